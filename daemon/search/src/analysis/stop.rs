//! Words that say little about what is looked for: `the`, `how`, `wie`, `como`, `怎么`.
//!
//! All words are indexed and can be found. Only a relaxed search treats these differently: it asks for the other words first.

use std::{collections::HashSet, sync::LazyLock};

use super::{Word, WordKind, fold};

/// A word that means something in another of the languages is left out, such as the English `car`
/// and `men`, which are conjunctions in French and Swedish: the language of a short query is not known.
const STOP_WORDS: [&str; 9] = [
    // English
    "a about am an and any are as at be been but by can could did do does doing don't for from get had has have how i i'm if in into \
     is isn't it it's its just let me my of on or our should so some than that the their them then there these they this to too us \
     was we were what what's when where which who whose why will with won't would you your",
    // Portuguese
    "agora ao aos as ate com como da das de dela dele deles depois do dos e ela ele eles em entre era esta estao estou eu faco faz \
     fazer foi foram ha isso isto ja lhe mais mas me mesmo meu meus minha muito na nao nas nem no nos nossa nosso num numa o onde os \
     ou para pela pelo pode por porque posso qual quais quando quanto quantos que quem sao se sem ser seu sua tem tenho ter todo um \
     uma voce",
    // Spanish
    "a al como con cual cuales cuando cuanto cuantos de del desde donde el ella ellos en es esta estan este esto estoy fue ha hace \
     hacer han hasta hay la las le les lo los mas mi mis muy ni nos nuestro o para pero por porque pasa puede puedo que quien se \
     segun ser si sobre son soy su sus tan te tengo tiene tu un una unas uno unos y ya yo",
    // German
    "aber als am an auch auf aus bei beim bin bis da damit das dass dein dem den denn der des dich dir doch du durch ein eine einem \
     einen einer eines er es fur gegen habe haben hat ich ihm ihn ihr im in ist ja kann kein keine konnen man mein meine meinem \
     meinen meiner mich mir mit muss nach nicht noch nun nur ob oder ohne sich sie sind so soll uber um und uns vom von vor wann \
     warum was welche welcher welches wenn wer werden wie wieso wir wird wo woher worden zu zum zur",
    // French
    "au aux avec c'est ce ces cette comment dans de des du elle en est et il ils j'ai je la le les leur lui ma mais me mes mon ne \
     nous ou par pas peut pourquoi quand que quel quelle qui sa se ses si sont sur ta te tu un une vous y",
    // Italian
    "agli alla alle anche che chi ci col come con cosa cui da dai dal dalla degli dei del della delle di dove e ed gli ho i il io \
     la le lo ma mi mia mio ne nel nella noi non per perche piu posso quale quando quanto questa questo sono su sul sulla ti tra tuo \
     un una uno vi",
    // Dutch
    "aan als bij dat de deze dit een en er het hij hoe ik je kan maar met mijn moet naar niet nog of om onze ook op over te tot uit \
     voor waar waarom wanneer wat we wel welke wie wij zijn zo zonder",
    // Swedish
    "att av de dem det detta du efter eller en ett for fran gor har hur i inte jag kan med mig min mitt nar och om pa sa sig ska som \
     till upp ut utan vad var varfor vi vid",
    // Russian
    "а без бы был в во вот вы где для до его ее если же за и из или их к как какая какие какой когда кто ли меня мне мой мы на над \
     не нет но о он она они от по под почему при с со так такое там то ты у уже чем что чтобы это я",
];
/// Characters that connect words in Chinese and Japanese. A pair with one of them is mostly no word.
const CONNECTING: &str = "的了吗呢么什怎是在我你和就也都很吧啊这那をはがのにでともへ";

static STOP_WORD_SET: LazyLock<HashSet<String>> =
    LazyLock::new(|| STOP_WORDS.iter().flat_map(|words| words.split(' ')).map(fold).collect());

/// Returns whether a word says little.
#[must_use]
pub fn is_stop_word(word: &Word<'_>) -> bool {
    match word.kind {
        WordKind::Whole | WordKind::Part => STOP_WORD_SET.contains(word.text),
        // Endings and particles of Japanese are written in hiragana.
        WordKind::Pair => {
            word.text.chars().all(is_hiragana) || word.text.contains(|c| CONNECTING.contains(c))
        }
    }
}

fn is_hiragana(c: char) -> bool {
    ('\u{3041}'..='\u{309f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Words;

    fn stop_words(text: &str) -> Vec<String> {
        Words::of(text).iter().filter(is_stop_word).map(|word| word.text.to_owned()).collect()
    }

    #[test]
    fn words_that_connect_others_say_little() {
        assert_eq!(stop_words("How do I keep the bees?"), ["how", "do", "i", "the"]);
        assert_eq!(stop_words("Für wen ist DAS?"), ["fur", "ist", "das"]);
        assert_eq!(stop_words("¿Cómo está la abeja?"), ["como", "esta", "la"]);
        assert_eq!(stop_words("怎么养蜜蜂"), ["怎么", "么养"]);
        assert_eq!(stop_words("猫が鳴きます"), ["猫が", "が鳴", "きま", "ます"]);
    }
}
