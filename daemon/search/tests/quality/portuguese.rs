//! Topics and queries in Portuguese. `fruta` and `costura` share the word `manga`, `conta` and `database` the word `banco`.

use super::judged::{
    Kind::{Code, Inflected, Mixed, Prefix, Question, Typo, Unaccented, Word, Words},
    Language, Query, Topic, topics,
};

pub(crate) const PORTUGUESE: Language =
    Language { code: "pt", topics: TOPICS, openings: OPENINGS, chatter: CHATTER, queries: QUERIES };

const TOPICS: &[Topic] = topics! {
    bees {
        enxame [
            "{Um enxame|O enxame} {pousou|instalou-se} {no telhado|na mangueira} do {vizinho|sítio}.",
            "As {abelhas|abelhas jataí} {abandonaram|deixaram} a {colmeia|caixa isca} {depois da chuva|ontem}.",
            "O {apicultor|meliponicultor} {capturou|captura} {enxames|o enxame} com {cera|atrativo}.",
            "Como {evitar|impedir} a {enxameação|divisão} {da colônia|das colmeias} na primavera?",
        ]
        mel [
            "{Colhemos|A colheita rendeu} {quinze|vinte} quilos de {mel|mel silvestre} {nesta florada|em março}.",
            "O {mel|pote de mel} {cristalizou|está cristalizando} {no armário|por causa do frio}.",
            "A {centrífuga|peneira} {separa|separou} a {cera|própolis} dos {favos|quadros}.",
            "Quanta {umidade|água} o {mel|mel de jataí} pode ter para não {fermentar|estragar}?",
        ]
        rainha [
            "A {rainha|abelha rainha} {parou|deixou} de {botar ovos|fazer postura} e há {zangões|muitos zangões}.",
            "{Introduzi|Vou introduzir} uma {nova rainha|rainha fecundada} numa {gaiola|gaiolinha}.",
            "As {operárias|abelhas} {rejeitaram|aceitaram} a {princesa|rainha} {comprada|do outro criador}.",
            "Há {realeiras|células reais} {em dois quadros|no ninho}; devo {destruí-las|dividir}?",
        ]
    }
    bread {
        fermento [
            "Meu {fermento natural|levain} {não cresce|parou de crescer} e {cheira|está cheirando} a {vinagre|acetona}.",
            "{Alimento|Alimentei} {o levain|a massa-mãe} com farinha {integral|de centeio} {todo dia|duas vezes por dia}.",
            "Posso {guardar|deixar} o {fermento|levain} na {geladeira|porta da geladeira} durante {as férias|a viagem}?",
            "Um {líquido escuro|líquido} {apareceu|aparece} sobre o {fermento|vidro}.",
        ]
        forno [
            "A {casca|crosta} do {pão|pão italiano} {queimou|ficou mole} na {panela de ferro|pedra}.",
            "{Asso|Assei} os {pães|dois pães} a {230|250} graus com {vapor|uma vasilha de água}.",
            "Os {cortes|cortes com lâmina} {não abriram|abrem pouco} no {forno|forno a gás}.",
            "Quanto tempo {pré-aqueço|devo aquecer} o {forno|fogão} para {pão rústico|pãezinhos}?",
        ]
        queijo [
            "Os {pães de queijo|pãezinhos de queijo} {murcharam|ficaram borrachudos} {depois de assados|na segunda fornada}.",
            "Uso {polvilho azedo|polvilho doce} e {queijo meia cura|queijo minas} {ralado|curado}.",
            "{Escaldar|Escaldei} o polvilho com {leite fervendo|óleo quente} {muda|mudou} a textura.",
            "Dá para {congelar|guardar} as {bolinhas|bolinhas cruas} de pão de queijo?",
        ]
    }
    fruta {
        plantio [
            "A {mangueira|muda de manga} {não dá frutos|floresceu} {há três anos|pela primeira vez}.",
            "{Podei|Vou podar} os {galhos|ramos} da {mangueira|árvore} {em agosto|depois da colheita}.",
            "As {mangas|frutas} {caem|caíram} {verdes|antes de amadurecer} por causa da {antracnose|mosca-das-frutas}.",
            "Que {adubo|fertilizante} {uso|recomenda} para {mangueiras|uma mangueira em vaso}?",
        ]
        receita [
            "{Fiz|Faço} {sorvete|mousse} de {manga|mangas maduras} com {leite condensado|iogurte}.",
            "O {chutney|molho} de manga {leva|levou} {gengibre|pimenta} e {vinagre|açúcar mascavo}.",
            "{Descascar|Para descascar} a {manga|fruta} sem {sujeira|desperdício}, corto {ao lado do caroço|em cubos}.",
            "Posso {congelar|bater} a {polpa|polpa de manga} para {sucos|vitaminas}?",
        ]
        feira [
            "A caixa de {manga palmer|manga tommy} {custa|custava} {trinta|quarenta} reais {na feira|no atacado}.",
            "O {feirante|vendedor} {escolheu|escolhe} as {mangas|frutas} {mais doces|no ponto}.",
            "{Exportamos|O produtor exporta} {mangas|frutas} para a {Holanda|Espanha} em {contêineres|avião}.",
            "Como {saber|reconhecer} se a {manga|manga espada} está {madura|boa} pelo {cheiro|toque}?",
        ]
    }
    costura {
        manga [
            "A {manga|manga longa} da {camisa|blusa} {ficou|está} {curta|apertada} no {ombro|punho}.",
            "{Costurei|Vou costurar} as {mangas|mangas bufantes} do {vestido|casaco} {à mão|na overloque}.",
            "O {molde|molde da manga} {não encaixa|sobra} na {cava|cava da blusa}.",
            "Como se {franze|alinhava} uma {manga|manga bufante} {no tecido|de algodão}?",
        ]
        maquina [
            "A {máquina de costura|máquina} {embola|embolou} a {linha|linha da bobina} {embaixo do tecido|toda hora}.",
            "{Troquei|Preciso trocar} a {agulha|correia} e {lubrifiquei|limpei} a {lançadeira|caixa da bobina}.",
            "A {tensão|tensão da linha} {arrebenta|arrebentava} o fio no {jeans|tecido grosso}.",
            "Qual {calcador|sapatilha} {serve|uso} para {zíper invisível|caseado}?",
        ]
        barra [
            "{Fazer a barra|A barra} da {calça|calça jeans} custa {vinte|trinta} reais na {costureira|oficina}.",
            "A {bainha|barra} {invisível|da cortina} {descosturou|desfez-se} {na lavagem|depois de um mês}.",
            "{Encurtei|Quero encurtar} {a saia|o vestido} {quatro|cinco} centímetros sem {cortar|desmanchar}.",
            "Uso {alfinetes|fita termocolante} para {marcar|prender} a {bainha|dobra}?",
        ]
    }
    conta {
        pix [
            "{Fiz|Mandei} um {Pix|pix} para a {chave errada|pessoa errada} e o banco {não devolve|não estornou}.",
            "A {chave|chave aleatória} do Pix {está vinculada|ficou vinculada} a {outro banco|outra conta}.",
            "O {golpista|golpe} {pediu|usou} um {comprovante|QR code falso} e {sumiu|bloqueou-me}.",
            "Qual o {limite|limite noturno} de {transferências|Pix} {por dia|à noite}?",
        ]
        cartao [
            "{Cancelei|Quero cancelar} o {cartão de crédito|cartão} por causa da {anuidade|cobrança indevida}.",
            "A {fatura|fatura do cartão} {veio|chegou} com {juros|parcelas} que {não reconheço|não fiz}.",
            "O banco {aumentou|reduziu} o {limite|limite do cartão} {sem avisar|depois do atraso}.",
            "Como {contestar|parcelar} uma {compra|fatura} {clonada|duplicada}?",
        ]
        emprestimo [
            "O {gerente|banco} {ofereceu|oferece} um {empréstimo|empréstimo consignado} a {dois|três} por cento ao mês.",
            "{Financiar|Financiamos} o {apartamento|imóvel} em {trinta anos|360 parcelas} pela {Caixa|cooperativa}.",
            "As {prestações|parcelas} {subiram|cabem no orçamento} com a {taxa Selic|inflação}.",
            "Posso {quitar|amortizar} a {dívida|prestação} antes do {prazo|vencimento}?",
        ]
    }
    database {
        consulta quotes "SELECT nome, SUM(valor_total) FROM pedidos GROUP BY nome;\nCREATE INDEX idx_pedidos_cliente ON pedidos (cliente_id);" [
            "A {consulta|query} no {banco de dados|Postgres} {demora|demorou} {dez segundos|minutos}.",
            "{Criei|Falta} um {índice|índice composto} na {coluna|chave estrangeira} e {melhorou|nada mudou}.",
            "O {plano de execução|EXPLAIN} {mostra|mostrou} uma {varredura sequencial|leitura completa} da tabela.",
            "Como {otimizar|reescrever} {junções|subconsultas} {lentas|com milhões de linhas}?",
        ]
        backup quotes "pg_dump -Fc loja > copia_noturna.dump\npg_restore -d loja copia_noturna.dump" [
            "O {backup|backup noturno} do banco {falhou|não terminou} por falta de {espaço|permissão}.",
            "{Restaurei|Não consigo restaurar} a {cópia|cópia de segurança} {num servidor menor|em outra versão}.",
            "{Apagaram|Alguém apagou} uma {tabela|tabela de clientes} e {recuperamos|não recuperamos} pelo {log|WAL}.",
            "De quanto em quanto tempo {testar|fazer} {cópias|backups} do banco?",
        ]
        modelo quotes "class Pedido(models.Model):\n    dataEntrega = models.DateField()\n    cliente_id = models.ForeignKey(Cliente)" [
            "{Devo|Preciso} {normalizar|separar} a {tabela|tabela de endereços} em {duas|várias}?",
            "A {chave primária|chave} {deveria|pode} ser um {UUID|número sequencial} {por segurança|no esquema}.",
            "{Relacionamentos|Um relacionamento} muitos para muitos {exige|pede} uma {tabela intermediária|tabela de ligação}.",
            "O {esquema|modelo} {guarda|guardava} {datas|valores} como {texto|ponto flutuante}, o que {deu problema|é errado}.",
        ]
    }
    taxes {
        deducao [
            "{Posso deduzir|Dá para deduzir} {consultas médicas|a mensalidade da escola} no {imposto de renda|IR}?",
            "O {contador|contabilista} {lançou|incluiu} as {despesas|despesas médicas} dos {dependentes|filhos}.",
            "{Recibos|Notas fiscais} do {dentista|plano de saúde} {reduzem|aumentaram} a {restituição|base de cálculo}.",
            "{Doações|A previdência privada} {são dedutíveis|é dedutível} até {doze|seis} por cento.",
        ]
        prazo [
            "{Perdi|Vou perder} o {prazo|prazo de entrega} da {declaração|declaração do imposto}.",
            "A {Receita Federal|Receita} {cobra|cobrou} {multa|multa de atraso} de {165 reais|um por cento}.",
            "{Retificar|Enviei uma retificadora para} a declaração {depois do prazo|em junho} {muda|mudou} o {lote|modelo}.",
            "Caí na {malha fina|malha}; {como regularizar|o que fazer} a {pendência|situação}?",
        ]
        autonomo [
            "Sou {autônomo|MEI} e {emito|emiti} {notas fiscais|nota fiscal} para {clientes|uma empresa} do exterior.",
            "O {carnê-leão|DAS} {vence|venceu} no {dia vinte|último dia útil}.",
            "{Ultrapassei|Posso ultrapassar} o {limite|faturamento} do {MEI|Simples Nacional} {neste ano|em dezembro}?",
            "{Contribuo|Devo contribuir} com o {INSS|instituto} sobre {o pró-labore|a receita}?",
        ]
    }
    violao {
        acordes [
            "A {pestana|pestana do fá} {dói|doía} na mão e o {acorde|acorde de fá} {abafa|não soa}.",
            "{Treino|Treinei} a {troca de acordes|mudança} entre {sol|dó} e {ré|lá menor} com {metrônomo|calma}.",
            "A {batida|levada} de {bossa nova|samba} {tem|usa} {acordes|muitos acordes} com {sétima|nona}.",
            "Existem {cifras|tablaturas} mais {simples|fáceis} para {iniciantes|quem começa}?",
        ]
        cordas [
            "{Troquei|Quero trocar} as {cordas|cordas de náilon} do {violão|violão clássico}.",
            "A {corda mi|corda sol} {desafina|arrebentou} {toda hora|quando toco}.",
            "{Afino|Afinei} o {violão|instrumento} com um {aplicativo|diapasão}, mas a {tarraxa|tarraxa da quinta} {escorrega|está frouxa}.",
            "{Aço|Cordas de aço} {estragam|empenam} o braço de um {violão|violão popular} {antigo|barato}?",
        ]
        luthier [
            "O {luthier|lutier} {baixou|regulou} a {ação|altura das cordas} e {trocou|lixou} o rastilho.",
            "O {braço|tampo} {empenou|rachou} com a {umidade|seca}.",
            "Os {trastes|trastes gastos} {trastejam|zumbem} na {quinta casa|primeira casa}.",
            "Quanto {custa|cobram por} uma {regulagem|restauração} em {São Paulo|Porto Alegre}?",
        ]
    }
    lisboa {
        transporte [
            "O {elétrico 28|elétrico} {sobe|subia} {a Alfama|até à Graça} sempre {lotado|cheio de turistas}.",
            "{Comprei|Vale a pena comprar} o {passe|cartão Viva Viagem} para o {metrô|comboio} de {Sintra|Cascais}.",
            "O {comboio|trem} para {o Porto|Coimbra} {atrasou|sai} da {estação|Gare do Oriente}.",
            "Há {ônibus|autocarro} do {aeroporto|terminal} para o {centro|Rossio} {à noite|de madrugada}?",
        ]
        hospedagem [
            "{Reservei|Procuro} um {apartamento|alojamento} {na Baixa|em Campo de Ourique} com {elevador|varanda}.",
            "A {pousada|pensão} {cobra|cobrou} a {taxa turística|caução} {por noite|na chegada}.",
            "O {hotel|anfitrião} {cancelou|mudou} a {reserva|hospedagem} {na véspera|sem explicação}.",
            "Que {bairro|zona} é {tranquilo|seguro} para {dormir|ficar} com {crianças|um bebê}?",
        ]
        comida [
            "Os {pastéis de nata|pastéis} {de Belém|da esquina} {são|estavam} {mornos|crocantes}.",
            "{Comemos|Recomendam} {bacalhau|sardinhas assadas} numa {tasca|marisqueira} {de bairro|em Alcântara}.",
            "O {couvert|vinho verde} {é cobrado|foi cobrado} mesmo sem {pedir|comer}?",
            "A {ginjinha|bica} {custa|custava} {dois|um} {euro|euros} no {quiosque|balcão}.",
        ]
    }
    saude {
        coracao [
            "O {cardiologista|médico} {pediu|viu} um {eletrocardiograma|ecocardiograma} do {coração|ventrículo}.",
            "Sinto {palpitações|o coração acelerado} {à noite|depois do café} e a {pressão|pressão arterial} {sobe|oscila}.",
            "{Tomo|Parei de tomar} {losartana|remédios} para a {hipertensão|pressão alta} {há anos|por conta própria}.",
            "{Arritmias|Uma arritmia} {leves|benignas} {impedem|permitem} {exercícios|corridas}?",
        ]
        alergia [
            "A {alergia|rinite} {piora|piorou} com {poeira|pelos de gato} e {pólen|mofo}.",
            "O {anti-histamínico|antialérgico} {dá sono|não funciona} {de dia|para urticária}.",
            "{Fiz|Marquei} um {teste alérgico|exame de sangue} e {deu|acusou} {ácaros|camarão}.",
            "{Espirro|Ele espirra} {sem parar|toda manhã}; {vacinas|a imunoterapia} {resolvem|ajuda}?",
        ]
        coluna [
            "A {hérnia de disco|dor lombar} {desce|irradia} pela {perna|perna esquerda}.",
            "O {fisioterapeuta|ortopedista} {indicou|passou} {pilates|alongamentos} para a {coluna|postura}.",
            "{Trabalho sentado|Fico sentada} {oito|dez} horas e as {costas|vértebras} {doem|travam}.",
            "{Cirurgia|Operar} a {coluna|hérnia} {vale a pena|é perigoso} na minha idade?",
        ]
    }
    futebol {
        tatica [
            "O {técnico|treinador} {escalou|mudou para} {três zagueiros|um 4-3-3} e {perdeu|dominou} o {meio-campo|jogo}.",
            "A {marcação|pressão alta} {cansa|cansou} os {laterais|volantes} no {segundo tempo|fim da partida}.",
            "O {contra-ataque|escanteio} {ensaiado|rápido} {gerou|rendeu} {dois gols|um gol}.",
            "Como {treinar|ensinar} {posicionamento|impedimento} a {meninos|uma escolinha}?",
        ]
        ingressos [
            "Os {ingressos|bilhetes} da {final|semifinal} {esgotaram|acabaram} em {minutos|meia hora}.",
            "O {sócio-torcedor|sócio} tem {prioridade|desconto} na {arquibancada|cadeira numerada} do {estádio|Maracanã}.",
            "{Comprei|Vendem} {ingressos|entradas} com {cambistas|um cambista} e o {QR code|código} {não passou|era falso}.",
            "A {torcida|torcida visitante} {entra|entrava} por qual {portão|setor}?",
        ]
        arbitragem [
            "O {árbitro|juiz} {anulou|marcou} um {pênalti|gol} com o {VAR|bandeirinha}.",
            "{Expulsaram|O cartão vermelho para} o {goleiro|atacante} {foi|pareceu} {injusto|exagerado}.",
            "A {regra|nova regra} da {mão na bola|bola na mão} {confunde|confundiu} {todos|jogadores}.",
            "{Impedimento|O impedimento} semiautomático {erra|acerta} {menos|sempre}?",
        ]
    }
    javascript {
        promessas quotes "async function buscarPedidos() {\n  const resposta = await fetch('/api/pedidos');\n  return resposta.json();\n}" [
            "A {função assíncrona|promessa} {devolve|retornou} `undefined` porque {faltou|esqueci} o `await`.",
            "O {laço|forEach} {não espera|ignora} as {promessas|requisições} {terminarem|pendentes}.",
            "{Trato|Como tratar} {erros|exceções} de `fetch` com {try/catch|catch}?",
            "{Promise.all|Executar em paralelo} {derruba|derrubou} tudo quando uma {requisição|promessa} {falha|é rejeitada}.",
        ]
        react quotes "const [listaFiltrada, setListaFiltrada] = useState([]);\nuseEffect(() => { carregarLista(); }, []);" [
            "O {componente|componente React} {renderiza|renderizou} {duas vezes|sem parar} por causa do `useEffect`.",
            "O {estado|state} {não atualiza|atualiza atrasado} {depois do clique|no formulário}.",
            "{Passar|Passo} {propriedades|props} por {cinco níveis|muitos componentes} {cansa|é ruim}; uso {contexto|Redux}?",
            "Qual a {chave|key} {certa|ideal} para {listas|itens} {dinâmicas|que mudam de ordem}?",
        ]
        npm quotes "npm ERR! ERESOLVE unable to resolve dependency tree\nnpm install --legacy-peer-deps" [
            "O `npm install` {trava|falha} com {conflito|conflitos} de {dependências|versões}.",
            "{Apaguei|Apagar} a pasta `node_modules` e o `package-lock.json` {resolveu|não adiantou}.",
            "{Publiquei|Vou publicar} um {pacote|módulo} {privado|com escopo} no {registro|npm}.",
            "{Devo atualizar|Atualizo} {pacotes|bibliotecas} {vulneráveis|antigas} com `npm audit`?",
        ]
    }
};

const OPENINGS: &[&str] = &[
    "Oi, {tudo bem|uma dúvida rápida}?",
    "{Bom dia|Boa tarde}, {preciso de ajuda|pode me ajudar}?",
    "{Como eu disse|Continuando a conversa de ontem}, {a situação é esta|aconteceu o seguinte}.",
    "Claro, {vamos por partes|eu explico}.",
    "Obrigado, {funcionou|ajudou muito}!",
];

const CHATTER: &[&str] = &[
    "{Por favor|Se puder}, {responda de forma curta|explique passo a passo|dê um exemplo}.",
    "Já {tentei|li} {muita coisa|vários artigos}, mas {nada resolveu|cada um diz uma coisa}.",
    "{Em geral|Como regra}, {comece devagar|anote tudo}, mude uma coisa por vez e {compare os resultados|veja o que acontece}.",
    "Depende {do tempo que você tem|do seu orçamento|do que você quer}.",
    "{Minha mulher|Meu irmão Tomás|Minha colega Inês} {acha|disse} que {não é problema|vai dar certo}.",
    "Se {não der certo|você não tiver certeza}, {pergunte a quem tem experiência|escreva de novo com mais detalhes}.",
    "O que você {acha|recomenda|sugere}? Existe {um jeito melhor|algo que esqueci}?",
    "{Primeiro|O primeiro passo}: faça uma lista {do que tem|do que precisa}. {Depois|Segundo}: decida o que pode esperar.",
    "Aliás, o tempo está {horrível|ótimo} hoje e {as crianças estão em casa|tenho o dia livre}.",
    "Vou {tentar isso|dar notícias} {amanhã|no fim de semana}.",
];

const QUERIES: &[Query] = &[
    (Word, "colmeia", "bees"),
    (Word, "violão", "violao"),
    (Word, "pênalti", "futebol/arbitragem"),
    (Word, "alergia", "saude/alergia"),
    (Words, "pão de queijo", "bread/queijo"),
    (Words, "manga bufante", "costura/manga"),
    (Words, "sorvete manga", "fruta/receita"),
    (Words, "banco de dados índice", "database/consulta"),
    (Words, "limite cartão banco", "conta/cartao"),
    (Words, "abelha rainha", "bees/rainha"),
    (Words, "máquina de costura linha", "costura/maquina"),
    (Words, "multa declaração imposto", "taxes/prazo"),
    (Inflected, "colheitas de mel", "bees/mel"),
    (Inflected, "empréstimos", "conta/emprestimo"),
    (Inflected, "podar mangueiras", "fruta/plantio"),
    (Inflected, "hérnias", "saude/coluna"),
    (Inflected, "deduzindo despesa médica", "taxes/deducao"),
    (Inflected, "pão assado forno", "bread/forno"),
    (Unaccented, "coracao", "saude/coracao"),
    (Unaccented, "violao acorde", "violao/acordes"),
    (Unaccented, "acaros polen", "saude/alergia"),
    (Unaccented, "agulha maquina", "costura/maquina"),
    (Unaccented, "autonomo nota fiscal", "taxes/autonomo"),
    (Unaccented, "pao de queijo polvilho", "bread/queijo"),
    (Typo, "apicultr", "bees/enxame"),
    (Typo, "fermeto natural", "bread/fermento"),
    (Typo, "ingresos estadio", "futebol/ingressos"),
    (Typo, "emprestimo consinado", "conta/emprestimo"),
    (Typo, "hospedajem", "lisboa/hospedagem"),
    (Typo, "fisioterapeta coluna", "saude/coluna"),
    (Prefix, "eletrocard", "saude/coracao"),
    (Prefix, "arquiban", "futebol/ingressos"),
    (Prefix, "imposto dedu", "taxes/deducao"),
    (Code, "useEffect", "javascript/react"),
    (Code, "lista filtrada", "javascript/react"),
    (Code, "valor_total", "database/consulta"),
    (Code, "node_modules", "javascript/npm"),
    (Mixed, "await promessa undefined", "javascript/promessas"),
    (Mixed, "backup postgres restaurar", "database/backup"),
    (Question, "como faço para trocar as cordas do meu violão", "violao/cordas"),
    (Question, "perdi o prazo do imposto de renda, e agora", "taxes/prazo"),
    (Question, "por que meu pão fica com a casca mole", "bread/forno"),
    (Question, "mandei um pix para a pessoa errada, como recuperar", "conta/pix"),
    (Question, "qual o melhor bairro para ficar em Lisboa com crianças", "lisboa/hospedagem"),
    (Question, "o que fazer quando o mel cristaliza", "bees/mel"),
    (Question, "quanto custa fazer a barra de uma calça", "costura/barra"),
];
