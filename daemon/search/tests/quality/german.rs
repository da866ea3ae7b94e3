//! Topics and queries in German. `burg` and `bicycle` share the word `Schloss`, `wald` and `zahn` the word `Kiefer`.

use super::judged::{
    Kind::{Code, Compound, Inflected, Mixed, Prefix, Question, Typo, Unaccented, Word, Words},
    Language, Query, Topic, topics,
};

pub(crate) const GERMAN: Language =
    Language { code: "de", topics: TOPICS, openings: OPENINGS, chatter: CHATTER, queries: QUERIES };

const TOPICS: &[Topic] = topics! {
    bees {
        schwarm [
            "Der {Bienenschwarm|Schwarm} {hängt|hing} {im Apfelbaum|am Zaun} {des Nachbarn|seit gestern}.",
            "Im {Bienenvolk|Bienenstock} sind {Weiselzellen|Schwarmzellen} {an drei Waben|auf der Brutwabe}.",
            "{Ein Ableger|Einen Ableger zu bilden} {verhindert|senkt} die {Schwarmstimmung|Schwarmlust}.",
            "Ein {Imker|Hobbyimker} {fängt|fing} {die Bienen|den Schwarm} mit {einer Schwarmkiste|Wasser und Besen} ein.",
        ]
        milben [
            "Die {Varroamilbe|Milbe} {schwächt|hat} {das Volk|beide Völker} {im Spätsommer|stark befallen}.",
            "{Ich behandle|Wir behandelten} {die Völker|das Bienenvolk} mit {Ameisensäure|Oxalsäure} {nach der Ernte|im Dezember}.",
            "Auf der {Windel|Stockwindel} {lagen|liegen} {zwölf|dreißig} Milben {pro Tag|nach drei Tagen}.",
            "{Verkrüppelte Flügel|Junge Bienen ohne Flügel} {deuten|deuteten} auf {ein Virus|Varroabefall}.",
        ]
        honig [
            "{Wir schleuderten|Ich schleudere} {zwanzig|dreißig} Kilo {Honig|Rapshonig} {im Juni|aus dem Honigraum}.",
            "Der {Honig|Blütenhonig} {kristallisiert|kandiert} {im Glas|im Eimer}; {rühren|cremig rühren} hilft.",
            "Der {Wassergehalt|Feuchtegehalt} {liegt|lag} bei {neunzehn|siebzehn} Prozent {im Refraktometer|laut Messung}.",
            "Was muss auf dem {Honigetikett|Etikett} {der Gläser|beim Verkauf} stehen?",
        ]
    }
    taxes {
        absetzen [
            "Kann ich {das Arbeitszimmer|den Laptop} {in der Steuererklärung|von der Steuer} absetzen?",
            "{Fahrtkosten|Die Pendlerpauschale} und {Fortbildungen|Arbeitsmittel} sind {Werbungskosten|absetzbar}.",
            "Der {Steuerberater|Lohnsteuerhilfeverein} {trug|trägt} {Handwerkerleistungen|Spenden} {in Anlage N|gesondert} ein.",
            "{Kinderbetreuungskosten|Krankheitskosten} {mindern|minderten} das {zu versteuernde Einkommen|Einkommen} {teilweise|zu zwei Dritteln}.",
        ]
        frist [
            "Ich habe die {Abgabefrist|Frist} {der Steuererklärung|beim Finanzamt} {versäumt|verpasst}.",
            "Das {Finanzamt|zuständige Amt} {verlangt|verlangte} einen {Verspätungszuschlag|Säumniszuschlag}.",
            "{Eine Fristverlängerung|Fristverlängerungen} {beantragt|beantragte} man {formlos|über Elster}.",
            "Gegen den {Steuerbescheid|Bescheid} {lege ich|legte sie} {Einspruch|fristgerecht Einspruch} ein.",
        ]
        umsatz [
            "Als {Kleinunternehmer|Freiberuflerin} {stelle|schreibe} ich {Rechnungen|eine Rechnung} ohne {Umsatzsteuer|Mehrwertsteuer}.",
            "Die {Umsatzsteuervoranmeldung|Voranmeldung} {ist fällig|reiche ich ein} {am zehnten|monatlich}.",
            "{Vorsteuer|Die gezahlte Vorsteuer} {auf Software|aus Eingangsrechnungen} {hole|holte} ich zurück.",
            "Gilt {Reverse-Charge|die Umkehr der Steuerschuld} bei {Kunden|Auftraggebern} in {Österreich|Frankreich}?",
        ]
    }
    burg {
        besichtigen [
            "Das {Schloss|Schloss Hohenberg} {öffnet|öffnete} {um neun|nur samstags}; {Führungen|eine Führung} {kosten|kostet} zwölf Euro.",
            "{Wir besichtigten|Lohnt es sich,} den {Rittersaal|Burggraben} und {die Kapelle|den Turm}{.| zu sehen?}",
            "Die {Burgruine|Burg} {liegt|lag} {über dem Rhein|am Wanderweg} und {hat|hatte} {eine Schänke|kaum Parkplätze}.",
            "{Kinder|Schulklassen} {verkleiden|verkleideten} sich {als Ritter|im Schloss} {beim Burgfest|an Pfingsten}.",
        ]
        hochzeit [
            "{Wir heiraten|Unsere Hochzeit feiern wir} im {Schloss|Wasserschloss} mit {achtzig|hundert} Gästen.",
            "Die {Saalmiete|Location} {beträgt|betrug} {viertausend|zweitausend} Euro {ohne Getränke|mit Bestuhlung}.",
            "Die {Standesbeamtin|Trauung} {kommt|findet} {in den Schlosspark|im Spiegelsaal} {statt|mit Aufpreis}.",
            "{Das Hochzeitskleid|Die Hochzeitstorte} {passt|kommt} {leider nicht|am Vortag}; wer {hilft|ändert} kurzfristig?",
        ]
        geschichte [
            "{Im Mittelalter|Um 1250} {erbaute|errichtete} ein {Graf|Raubritter} die {Burg|Höhenburg}.",
            "Der {Dreißigjährige Krieg|Bauernkrieg} {zerstörte|beschädigte} {die Mauern|den Bergfried}.",
            "{Archäologen|Denkmalpfleger} {fanden|finden} {Scherben|Münzen} {unter dem Palas|im Brunnen}.",
            "Das {Adelsgeschlecht|Geschlecht} {starb|verarmte} {im 17. Jahrhundert|nach einer Erbteilung}.",
        ]
    }
    bicycle {
        schloss [
            "Welches {Fahrradschloss|Bügelschloss} {hält|widersteht} {einem Bolzenschneider|der Flex} {länger|am längsten} stand?",
            "{Mein Rad|Mein Fahrrad} wurde {trotz Kettenschloss|samt Schloss} {am Bahnhof|aus dem Keller} gestohlen.",
            "{Der Schlüssel|Der Schließzylinder} {klemmt|brach} im {Faltschloss|Rahmenschloss} {ab|bei Frost}.",
            "Die {Versicherung|Hausratversicherung} {verlangt|zahlt} {eine Rahmennummer|nur mit Kaufbeleg} nach dem {Diebstahl|Fahrraddiebstahl}.",
        ]
        kette [
            "Die {Kette|Fahrradkette} {springt|sprang} {auf den kleinen Ritzeln|unter Last} über.",
            "Die {Schaltung|Kettenschaltung} {rasselt|hakt}, {obwohl|seit} ich den {Schaltzug|Umwerfer} {eingestellt habe|tauschte}.",
            "{Ich öle|Man reinigt} die {Kette|Kassette} {alle 300 Kilometer|nach Regenfahrten}.",
            "Wann {wechselt|tauscht} man {Kettenblätter|das Ritzelpaket} {mit der Kette|am E-Bike}?",
        ]
        akku [
            "Der {Akku|E-Bike-Akku} {hält|reicht} {im Winter|nach drei Jahren} nur {dreißig|vierzig} Kilometer.",
            "{Lade|Lädt man} den {Akku|Fahrradakku} {nur bis achtzig Prozent|nicht unter null Grad}{.|?}",
            "Das {Display|Ladegerät} {zeigt|meldet} {einen Fehlercode|Fehler 503} {beim Einschalten|am Motor}.",
            "Ein {Ersatzakku|neuer Akku} {kostet|kostete} {siebenhundert|achthundert} Euro {beim Händler|im Netz}.",
        ]
    }
    wald {
        baeume [
            "Die {Kiefer|Waldkiefer} {verliert|verlor} {Nadeln|braune Nadeln} {wegen der Dürre|nach dem Pilzbefall}.",
            "{Der Förster|Die Försterin} {pflanzt|pflanzte} {Eichen|Weißtannen} zwischen {die Fichten|Kiefern}.",
            "Der {Borkenkäfer|Buchdrucker} {frisst|bohrt} sich durch {Fichtenwälder|geschwächte Stämme}.",
            "Wie alt {wird|werden} {eine Kiefer|Buchen} {auf Sandboden|im Mischwald}?",
        ]
        pilze [
            "{Ich fand|Wir sammelten} {Steinpilze|Pfifferlinge} {unter Kiefern|am Waldrand} {nach dem Regen|im September}.",
            "Wie {unterscheide|erkennt} man {Knollenblätterpilz|giftige Pilze} und {Champignon|Speisepilze}?",
            "Der {Pilzberater|Pilzsachverständige} {warf|warnte vor} {die Hälfte|bitteren Röhrlingen} {weg|im Korb}.",
            "{Getrocknete|Eingefrorene} {Maronen|Pilze} {halten|hielten} {ein Jahr|den ganzen Winter}.",
        ]
        brennholz [
            "{Ein Raummeter|Zwei Ster} {Brennholz|Buchenholz} {kostet|kosteten} {hundert|neunzig} Euro {ofenfertig|im Wald}.",
            "Das {Holz|Kaminholz} {trocknet|lagert} {zwei Jahre|überdacht} bis {zwanzig|fünfzehn} Prozent {Restfeuchte|Feuchte}.",
            "Mit der {Motorsäge|Kettensäge} {braucht|brauchte} man {einen Motorsägenschein|Schnittschutzhosen}.",
            "{Spaltet|Spaltete} ein {Holzspalter|Spalthammer} {Kiefernholz|astige Stücke} {leichter|besser}?",
        ]
    }
    zahn {
        kiefer [
            "Mein {Kiefer|Kiefergelenk} {knackt|schmerzt} {beim Kauen|morgens} {seit Wochen|auf der linken Seite}.",
            "{Der Zahnarzt|Die Kieferorthopädin} {verschrieb|empfahl} eine {Knirscherschiene|Aufbissschiene}.",
            "{Zähneknirschen|Nächtliches Knirschen} {verspannt|verspannte} den {Nacken|Kaumuskel}.",
            "Hilft {Physiotherapie|Botox} bei {Kieferschmerzen|verspanntem Kiefer}?",
        ]
        implantat [
            "Ein {Implantat|Zahnimplantat} im {Oberkiefer|Unterkiefer} {kostet|kostete} {dreitausend|zweitausend} Euro.",
            "Der {Knochenaufbau|Sinuslift} {heilt|heilte} {vier|sechs} Monate {ein|vor der Krone}.",
            "Die {Krankenkasse|Zahnzusatzversicherung} {erstattet|zahlt} {die Hälfte|nur den Festzuschuss} {laut Heilplan|nach Antrag}.",
            "{Brücke|Eine Brücke} oder {Implantat|Krone}: was {hält|hielt} {länger|am besten}?",
        ]
        weisheit [
            "Meine {Weisheitszähne|unteren Weisheitszähne} {wachsen|liegen} {schief|quer} und {drücken|entzünden sich}.",
            "Nach der {Weisheitszahn-OP|Entfernung} {schwoll|schwillt} die {Wange|Backe} {drei Tage|stark} an.",
            "{Vollnarkose|Eine Narkose} {zahlt|kostet} man {meistens|oft} {selbst|extra}.",
            "Wann darf man {nach dem Ziehen|mit der Wunde} wieder {Sport treiben|Kaffee trinken}?",
        ]
    }
    bread {
        sauerteig [
            "Mein {Sauerteig|Roggensauerteig} {geht nicht auf|riecht nach Nagellack} {seit der Hitze|im Kühlschrank}.",
            "{Ich füttere|Wir fütterten} das {Anstellgut|Anstellgut} mit {Roggenmehl|Vollkornmehl} und {warmem Wasser|Wasser}.",
            "{Drei Stufen|Die Dreistufenführung} {geben|gibt} {mehr Säure|dem Roggenbrot Trieb}.",
            "Wie {lagert|trocknet} man {Sauerteig|Anstellgut} {im Urlaub|als Vorrat}?",
        ]
        backen [
            "Die {Kruste|Brotkruste} {wird|wurde} {zu hart|nicht knusprig} im {Gusseisentopf|Backofen}.",
            "{Backe|Ich backe} {das Brot|die Laibe} bei {250|240} Grad {mit Schwaden|auf dem Backstein} {an|zehn Minuten}.",
            "Der {Laib|Brotlaib} {reißt|riss} {seitlich|unten} auf, weil {er zu jung war|der Einschnitt fehlt}.",
            "{Ober- und Unterhitze|Umluft} oder {Heißluft|Dampf} für {Brötchen|Mischbrot}?",
        ]
        mehl [
            "Ist {Dinkelmehl|Weizenmehl} {Type 630|Type 550} {für Hefezopf|für Brötchen} geeignet?",
            "{Eine Getreidemühle|Die Mühle} {mahlt|mahlte} {Dinkelkörner|Roggen} {frisch|sehr fein}.",
            "Der {Teig|Weizenteig} {klebt|zerläuft}, weil das {Mehl|Vollkornmehl} {mehr Wasser bindet|zu wenig Kleber hat}.",
            "{Mehlmotten|Lebensmittelmotten} {sitzen|waren} {im Vorratsschrank|in der Mehltüte}.",
        ]
    }
    miete {
        kuendigung [
            "Der {Vermieter|Eigentümer} {kündigt|kündigte} {wegen Eigenbedarf|ohne Begründung} {die Wohnung|das Mietverhältnis}.",
            "Die {Kündigungsfrist|Frist} {beträgt|betrug} {drei|neun} Monate {laut Mietvertrag|nach acht Jahren}.",
            "{Ich widerspreche|Der Mieterverein widersprach} der {Kündigung|Räumung} wegen {einer Härte|Krankheit}.",
            "Darf man {einen Nachmieter|Nachmieter} {stellen|suchen}, um {früher auszuziehen|die Frist zu verkürzen}?",
        ]
        nebenkosten [
            "Die {Nebenkostenabrechnung|Betriebskostenabrechnung} {kam|ist} {zu spät|doppelt so hoch}.",
            "{Heizkosten|Die Heizkosten} und {Hausmeister|Müllabfuhr} {stiegen|steigen} um {dreißig|zwanzig} Prozent.",
            "Wir {prüfen|verlangten} {die Belege|Einsicht in Belege} {beim Verwalter|der Hausverwaltung}.",
            "Muss ich {die Nachzahlung|eine Nachzahlung} {sofort|in voller Höhe} {überweisen|leisten}?",
        ]
        kaution [
            "Die {Mietkaution|Kaution} {wurde|wird} {nach dem Auszug|seit Monaten} {einbehalten|nicht zurückgezahlt}.",
            "Im {Übergabeprotokoll|Protokoll} {stehen|standen} {Kratzer im Parkett|Bohrlöcher} {nicht|als Mangel}.",
            "Muss man {beim Auszug|am Ende} {streichen|Schönheitsreparaturen machen}?",
            "{Eine Bürgschaft|Ein Mietaval} {ersetzt|ersetzte} {drei|zwei} {Kaltmieten|Monatsmieten}.",
        ]
    }
    rust {
        ausleihe quotes "let mut zeilen = lade_zeilen();\nlet erste = &zeilen[0];\nzeilen.push(neueZeile); // error[E0502]" [
            "Der {Borrow Checker|Compiler} {meckert|verbietet}, dass `zeilen` {doppelt|gleichzeitig} {ausgeliehen|geborgt} wird.",
            "{Rust verbietet|Warum verbietet Rust} eine {zweite|veränderliche} {Referenz|Ausleihe} {in der Schleife|im Closure}{.|?}",
            "{Klonen|Ein `clone`} des {Vektors|Strings} {behebt|umgeht} den {Fehler|Ownership-Fehler}.",
            "{Lebenszeiten|Lifetimes} im {Struct|Funktionskopf} {verwirren|verstehe} {mich|ich nicht}.",
        ]
        traits quotes "impl fmt::Display for RechnungsPosition {\n    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result { write!(f, \"{}\", self.betrag) }\n}" [
            "Ein {Trait|Trait-Objekt} {braucht|verlangt} {`dyn` und eine Box|Objektsicherheit}.",
            "{Generische Funktionen|Generics} mit {Trait-Bounds|Schranken} {werden|wurden} {schwer lesbar|monomorphisiert}.",
            "Darf ich {fremde Traits|`Display`} für {fremde Typen|Typen anderer Crates} {implementieren|umsetzen}?",
            "{Standardimplementierungen|Eine Blanket-Implementierung} {kollidiert|kollidieren} {mit meiner|miteinander}.",
        ]
        cargo quotes "error: failed to select a version for `openssl-sys`\ncargo update --precise 0.9.102" [
            "{Cargo findet|`cargo build` findet} {keine passende Version|ein Paket nicht} der {Abhängigkeit|Crate}.",
            "Ein {Workspace|Cargo-Workspace} {teilt|teilt sich} {das Zielverzeichnis|die Lockdatei} {zwischen Crates|im Monorepo}.",
            "Die {Kompilierzeit|Bauzeit} {beträgt|sank} {vier Minuten|mit sccache} {im CI|bei jedem Lauf}.",
            "{Feature-Flags|Features} {schalten|schalteten} {optionale Abhängigkeiten|Module} frei.",
        ]
    }
    heizung {
        waermepumpe [
            "Die {Wärmepumpe|Luftwärmepumpe} {taktet|vereist} {bei Frost|alle zehn Minuten}.",
            "{Eine Förderung|Die Förderung} der {KfW|BAFA} {deckt|zahlt} {fünfzig|siebzig} Prozent {der Wärmepumpe|der Kosten}.",
            "Die {Vorlauftemperatur|Jahresarbeitszahl} {liegt|lag} bei {fünfunddreißig|vier} {im Altbau|mit Fußbodenheizung}.",
            "Ist eine {Wärmepumpe|Erdwärmepumpe} {für Nachbarn|im Garten} zu {laut|groß}?",
        ]
        thermostat [
            "Das {Thermostat|Heizkörperthermostat} {regelt|schaltet} {nicht ab|zu spät} und der {Heizkörper|Raum} {bleibt kalt|überhitzt}.",
            "{Ich entlüfte|Wir entlüfteten} {die Heizkörper|alle Heizkörper} {im Herbst|weil es gluckert}.",
            "Ein {hydraulischer Abgleich|Abgleich} {senkt|senkte} den {Verbrauch|Gasverbrauch} {um zehn Prozent|spürbar}.",
            "Welche {smarten|programmierbaren} {Thermostate|Heizungsregler} {funktionieren|laufen} ohne {Cloud|Bridge}?",
        ]
        daemmung [
            "Die {Dachdämmung|Zwischensparrendämmung} {aus Holzfaser|mit Zellulose} {kostet|kostete} {sechzig|achtzig} Euro je Quadratmeter.",
            "{Schimmel|Kondenswasser} {entstand|bildet sich} {hinter der Dämmung|an Wärmebrücken}.",
            "Die {Energieberaterin|Energieberatung} {empfahl|rechnete} {eine Außendämmung|neue Fenster} {zuerst|im Sanierungsfahrplan}.",
            "Lohnt {eine Kellerdeckendämmung|die Dämmung der Kellerdecke} in {Eigenleistung|Mietshäusern}?",
        ]
    }
    bahn {
        verspaetung [
            "Mein {Zug|ICE} {hatte|hat} {neunzig|siebzig} Minuten {Verspätung|Verspätung wegen Bauarbeiten}.",
            "{Fahrgastrechte|Das Fahrgastrechteformular} {geben|bringt} {fünfundzwanzig|fünfzig} Prozent {Entschädigung|Erstattung}.",
            "Der {Anschlusszug|Anschluss} {in Hannover|in Fulda} {fuhr|fiel} {weg|aus}.",
            "Zahlt die {Bahn|Deutsche Bahn} {ein Taxi|ein Hotelzimmer} {nach Mitternacht|bei Zugausfall}?",
        ]
        karte [
            "Die {BahnCard|BahnCard 50} {verlängert|verlängerte} sich {automatisch|ohne Kündigung}.",
            "Gilt das {Deutschlandticket|Monatsticket} {im Intercity|in Regionalzügen} {mit Fahrrad|für Hunde}?",
            "{Der Sparpreis|Ein Sparpreis} {ist|war} {nicht stornierbar|an den Zug gebunden}.",
            "{Sitzplatzreservierungen|Eine Reservierung} {im Ruhebereich|im Familienabteil} {kostet|kosten} {fünf|sechs} Euro.",
        ]
        nachtzug [
            "Der {Nachtzug|Schlafwagen} {nach Wien|nach Zürich} {ist|war} {ausgebucht|überfüllt}.",
            "Im {Liegewagen|Abteil} {schlafen|schliefen} {sechs|vier} Personen {ohne Klimaanlage|mit Frühstück}.",
            "{Ohrstöpsel|Eine Schlafmaske} {helfen|hilft} {im Nightjet|gegen das Rattern}.",
            "Kann man {ein Fahrrad|Skier} im {Nachtzug|Nightjet} {mitnehmen|verstauen}?",
        ]
    }
    garten {
        tomaten [
            "Die {Tomaten|Tomatenpflanzen} {bekommen|haben} {Braunfäule|braune Flecken} {nach Regen|trotz Tomatendach}.",
            "{Ich geize|Muss man} {die Seitentriebe|Fleischtomaten} {aus|ausgeizen} und {binde sie an|düngen}?",
            "{Aussaat|Die Aussaat} {auf der Fensterbank|im Gewächshaus} {beginnt|gelang} {im März|mit Anzuchterde}.",
            "{Blütenendfäule|Die Blütenendfäule} {kommt von|zeigt} {Kalziummangel|unregelmäßigem Gießen}.",
        ]
        rasen [
            "Der {Rasen|Zierrasen} {vermoost|hat kahle Stellen} {im Schatten|nach dem Winter}.",
            "{Vertikutieren|Das Vertikutieren} und {Nachsäen|Düngen} {half|hilft} {im April|bei feuchtem Boden}.",
            "Ein {Mähroboter|Rasenmäher} {verletzt|gefährdet} {Igel|junge Igel} {in der Dämmerung|nachts}.",
            "Wie {tief|oft} {mähe|schneidet} man den {Rasen|Schattenrasen} {bei Trockenheit|im Hochsommer}?",
        ]
        kompost [
            "Der {Kompost|Komposthaufen} {stinkt|schimmelt}, weil {Luft fehlt|zu viel Rasenschnitt drin ist}.",
            "{Schnecken|Nacktschnecken} {legen|legten} {Eier|Gelege} {im Kompost|unter Brettern} ab.",
            "{Kaffeesatz|Eierschalen} und {Laub|Küchenabfälle} {verrotten|zersetzen} sich {langsam|mit Kompostwürmern}.",
            "Wann {siebt|setzt} man {den Komposter|reifen Kompost} {um|ab}?",
        ]
    }
};

const OPENINGS: &[&str] = &[
    "Hallo, {kurze Frage|ich brauche Hilfe}.",
    "{Guten Morgen|Guten Tag}, {kannst du mir helfen|hast du kurz Zeit}?",
    "{Wie gesagt|Noch einmal zu gestern}, {die Lage ist so|Folgendes ist passiert}.",
    "Klar, {gehen wir es durch|ich erkläre es}.",
    "Danke, {das hat geklappt|das hat sehr geholfen}!",
];

const CHATTER: &[&str] = &[
    "{Bitte|Könntest du} {kurz antworten|Schritt für Schritt erklären|ein Beispiel geben}.",
    "Ich habe schon {einiges probiert|mehrere Anleitungen gelesen}, aber {nichts half|alle sagen etwas anderes}.",
    "{Im Allgemeinen|In der Regel} gilt: {klein anfangen|alles notieren}, immer nur eine Sache ändern und {vergleichen|abwarten}.",
    "Das hängt davon ab, {wie viel Zeit du hast|wie hoch dein Budget ist|was du erreichen willst}.",
    "{Meine Frau|Mein Bruder Tom|Meine Kollegin Ayşe} {meint|sagt}, das {ist kein Problem|wird schon}.",
    "Wenn {das nicht klappt|du unsicher bist}, {frag jemanden mit Erfahrung|schreib noch einmal und erzähl mehr}.",
    "Was {meinst|empfiehlst|rätst} du? Gibt es {einen besseren Weg|etwas, das ich vergessen habe}?",
    "{Zuerst|Der erste Schritt}: mach eine Liste mit dem, {was du hast|was du brauchst}. {Dann|Zweitens}: entscheide, was warten kann.",
    "Übrigens ist das Wetter heute {schrecklich|herrlich} und {die Kinder sind zu Hause|ich habe den ganzen Tag frei}.",
    "Ich werde {es versuchen|berichten}, {morgen|am Wochenende}.",
];

const QUERIES: &[Query] = &[
    (Word, "Sauerteig", "bread/sauerteig"),
    (Word, "Wärmepumpe", "heizung/waermepumpe"),
    (Word, "Kompost", "garten/kompost"),
    (Word, "Eigenbedarf", "miete/kuendigung"),
    (Words, "Schloss besichtigen", "burg/besichtigen"),
    (Words, "Schloss Fahrrad gestohlen", "bicycle/schloss"),
    (Words, "Kiefer Schmerzen Kauen", "zahn/kiefer"),
    (Words, "Kiefer Nadeln Dürre", "wald/baeume"),
    (Words, "Nachtzug Wien", "bahn/nachtzug"),
    (Words, "Tomaten Braunfäule", "garten/tomaten"),
    (Words, "Varroa Ameisensäure", "bees/milben"),
    (Compound, "Steuer absetzen", "taxes/absetzen"),
    (Compound, "Schwarm", "bees/schwarm"),
    (Compound, "Zuschlag Finanzamt", "taxes/frist"),
    (Compound, "Abrechnung Nebenkosten", "miete/nebenkosten"),
    (Compound, "Dämmung", "heizung/daemmung"),
    (Compound, "Implantat Zahn", "zahn/implantat"),
    (Compound, "Kettenschloss Fahrrad", "bicycle/schloss"),
    (Inflected, "Steinpilz sammeln", "wald/pilze"),
    (Inflected, "Weisheitszahn", "zahn/weisheit"),
    (Inflected, "Heizkörpern entlüften", "heizung/thermostat"),
    (Inflected, "Kündigungen Vermieter", "miete/kuendigung"),
    (Inflected, "Rechnung Umsatzsteuern", "taxes/umsatz"),
    (Inflected, "Schnecke", "garten/kompost"),
    (Unaccented, "Waermepumpe Foerderung", "heizung/waermepumpe"),
    (Unaccented, "Kuendigungsfrist", "miete/kuendigung"),
    (Unaccented, "Verspatung Zug", "bahn/verspaetung"),
    (Unaccented, "Oxalsaure Bienen", "bees/milben"),
    (Unaccented, "Zähneknirschen Schiene", "zahn/kiefer"),
    (Typo, "Borkenkefer", "wald/baeume"),
    (Typo, "Vertikutiren Rasen", "garten/rasen"),
    (Typo, "Deutschlandtiket", "bahn/karte"),
    (Typo, "Saurteig", "bread/sauerteig"),
    (Typo, "Steuerbescheit", "taxes/frist"),
    (Prefix, "Thermost", "heizung/thermostat"),
    (Prefix, "Honig schleu", "bees/honig"),
    (Prefix, "Fahrgastr", "bahn/verspaetung"),
    (Code, "RechnungsPosition", "rust/traits"),
    (Code, "lade zeilen", "rust/ausleihe"),
    (Mixed, "Borrow Checker Referenz Schleife", "rust/ausleihe"),
    (Mixed, "cargo Abhängigkeit openssl", "rust/cargo"),
    (Question, "Wie bekomme ich meine Kaution zurück?", "miete/kaution"),
    (Question, "Warum springt die Kette an meinem Rad über?", "bicycle/kette"),
    (Question, "Was kann ich gegen Moos im Rasen tun?", "garten/rasen"),
    (Question, "Welche Pilze sind giftig und wie erkenne ich sie?", "wald/pilze"),
    (Question, "Wie lange hält der Akku vom E-Bike im Winter?", "bicycle/akku"),
    (Question, "Was kostet eine Hochzeit in einem Schloss?", "burg/hochzeit"),
    (Question, "Wie teuer ist trockenes Holz für den Kamin?", "wald/brennholz"),
];
