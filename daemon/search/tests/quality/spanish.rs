//! Topics and queries in Spanish. `sierra` is a saw and a mountain range, `banco` a bench and a bank.

use super::judged::{
    Kind::{Code, Inflected, Mixed, Prefix, Question, Typo, Unaccented, Word, Words},
    Language, Query, Topic, topics,
};

pub(crate) const SPANISH: Language =
    Language { code: "es", topics: TOPICS, openings: OPENINGS, chatter: CHATTER, queries: QUERIES };

const TOPICS: &[Topic] = topics! {
    carpinteria {
        sierra [
            "La {sierra de mesa|sierra circular} {quema|quemaba} la {madera|tabla de roble} al {cortar|hacer cortes}.",
            "{Cambié|Voy a cambiar} el {disco|disco de corte} de la {sierra|ingletadora} por uno de {sesenta|cuarenta} dientes.",
            "La {guía|guía paralela} {no está recta|se mueve} y los {cortes|tableros} {salen|quedan} torcidos.",
            "¿Qué {sierra|sierra de calar} {recomiendas|sirve} para {cortar|cortes curvos en} {contrachapado|aglomerado}?",
        ]
        barniz [
            "El {barniz|barniz al agua} {se cuarteó|quedó pegajoso} {en la mesa|sobre la puerta}.",
            "{Lijé|Estoy lijando} la {madera|silla} con grano {240|180} antes de {barnizar|la segunda mano}.",
            "El {aceite de linaza|aceite danés} {tarda|tardó} {días|una semana} en {secar|curar}.",
            "¿Se puede {aplicar|dar} {cera|goma laca} {encima|después} del {tinte|barniz}?",
        ]
        banco [
            "{Construí|Estoy construyendo} un {banco de trabajo|banco de carpintero} de {pino|haya} con {tornillo|prensa}.",
            "Las {espigas|uniones} de {caja y espiga|cola de milano} {encajan|no cierran} en las patas.",
            "El {tablero|tablero del banco} {se alabeó|se dobló} por la {humedad|calefacción}.",
            "¿Qué {altura|grosor} debe tener un {banco|banco de carpintería} para {cepillar|trabajar de pie}?",
        ]
    }
    hiking {
        rutas [
            "La {ruta|travesía} por la {sierra|Sierra de Gredos} {dura|duró} {seis horas|dos días}.",
            "{Subimos|Queremos subir} al {pico|Almanzor} por la {vertiente norte|cara sur} con {poca nieve|niebla}.",
            "El {sendero|camino} {está|estaba} {mal señalizado|cortado} cerca del {collado|refugio}.",
            "¿Hay {fuentes|agua} en la {senda|ruta circular} de la {sierra|cumbre}?",
        ]
        equipo [
            "La {mochila|mochila de cuarenta litros} {pesa|pesaba} {doce|nueve} kilos con la {tienda|tienda de campaña}.",
            "Los {crampones|bastones} {no ajustan|rozan} con mis {botas|botas rígidas}.",
            "El {saco de dormir|saco} de {plumas|fibra} {aguanta|abriga} hasta {cinco bajo cero|cero grados}.",
            "¿Qué {chaqueta|capa} {impermeable|transpirable} {llevas|usas} para {lluvia|viento}?",
        ]
        nieve [
            "El {parte|boletín} de {avalanchas|aludes} {marca|marcaba} {riesgo tres|riesgo alto}.",
            "{Hicimos|Aprendí} {esquí de travesía|raquetas} {con un guía|en los Pirineos}.",
            "La {nieve|nieve venteada} {se desprendió|crujía} en la {pala|ladera}.",
            "¿Cuándo {conviene|hay que} llevar {piolet|ARVA} y {pala|sonda}?",
        ]
    }
    mortgage {
        tipos [
            "El {banco|gestor} {ofrece|ofreció} una {hipoteca fija|hipoteca mixta} al {tres|dos y medio} por ciento.",
            "El {euríbor|Euríbor} {subió|sube} y la {cuota|cuota mensual} {se encarece|creció cien euros}.",
            "¿{Conviene|Es mejor} el {tipo variable|tipo fijo} {ahora|a treinta años}?",
            "{Exigen|Pedían} {domiciliar la nómina|un seguro de vida} para {bonificar|bajar} el {interés|diferencial}.",
        ]
        gastos [
            "Los {gastos|gastos de notaría} y la {tasación|gestoría} {suman|sumaron} {tres|cuatro} mil euros.",
            "{Reclamé|Voy a reclamar} la {cláusula suelo|comisión de apertura} al banco {ante el juez|por escrito}.",
            "El {registro|notario} {cobra|cobró} por {inscribir|la escritura} de la {vivienda|compraventa}.",
            "¿Quién {paga|debe pagar} los {impuestos|actos jurídicos} de la {hipoteca|escritura}?",
        ]
        amortizar [
            "{Amorticé|Quiero amortizar} {diez|veinte} mil euros para {reducir plazo|bajar la cuota}.",
            "La {comisión|penalización} por {amortización anticipada|cancelar antes} {es|era} del {uno|dos} por ciento.",
            "¿Es {preferible|rentable} {adelantar|amortizar} {capital|deuda} o {invertir|ahorrar}?",
            "{Cancelamos|Hemos cancelado} la {hipoteca|deuda} con la {herencia|venta del piso}.",
        ]
    }
    taxes {
        deducciones [
            "¿{Puedo deducir|Desgravan} el {alquiler|teletrabajo} en la {declaración de la renta|renta}?",
            "El {asesor|gestor} {incluyó|incluye} las {donaciones|guarderías} y los {planes de pensiones|gastos escolares}.",
            "La {deducción|desgravación} por {maternidad|familia numerosa} {llega|llegó} a {mil|doce cientos} euros.",
            "{Guardé|Hay que guardar} {facturas|recibos} de {la reforma|placas solares} {cuatro años|para Hacienda}.",
        ]
        plazo [
            "{Se me pasó|Olvidé} el {plazo|último día} para {presentar|entregar} la {renta|declaración}.",
            "{Hacienda|La Agencia Tributaria} {cobra|impuso} un {recargo|recargo del cinco por ciento} por {retraso|presentarla tarde}.",
            "¿Cómo {corrijo|rectifico} un {borrador|borrador confirmado} con {errores|datos equivocados}?",
            "Me {llegó|enviaron} una {paralela|notificación} y tengo {diez días|un mes} para {alegar|pagar}.",
        ]
        autonomos [
            "Como {autónoma|autónomo} {presento|presenté} el {modelo 303|IVA trimestral} {en abril|cada trimestre}.",
            "La {cuota|cuota de autónomos} {depende|dependía} de los {rendimientos|ingresos reales}.",
            "¿{Facturo|Debo facturar} con {retención|IRPF del quince} a una {empresa|clienta} {extranjera|de Portugal}?",
            "{Me di de alta|Voy a darme de alta} en el {epígrafe|IAE} y la {tarifa plana|Seguridad Social}.",
        ]
    }
    cocina {
        paella [
            "El {arroz|arroz bomba} de la {paella|paella valenciana} {quedó|salió} {pasado|duro}.",
            "El {sofrito|caldo} {lleva|llevaba} {tomate|azafrán} y {conejo|garrofón}, nunca {chorizo|cebolla}.",
            "{Conseguí|¿Cómo consigo} el {socarrat|fondo tostado} con {fuego de leña|un quemador de gas}{.|?}",
            "¿Cuánto {caldo|líquido} por {taza|persona} {pones|echas} en la {paellera|paella}?",
        ]
        tortilla [
            "La {tortilla|tortilla de patatas} {se pegó|se rompió} al {darle la vuelta|cuajar}.",
            "{Frío|Confité} las {patatas|papas} en {aceite de oliva|aceite suave} con {cebolla|ajo}.",
            "{Bato|Batí} {seis|ocho} {huevos|huevos camperos} y dejo {reposar|empapar} la mezcla.",
            "¿Con {cebolla|chorizo} o sin ella, {jugosa|poco hecha} o {cuajada|seca}?",
        ]
        pan [
            "La {masa madre|masa madre de centeno} {no burbujea|huele a vinagre} {desde el lunes|en verano}.",
            "{Horneé|Horneo} la {hogaza|barra} {con vapor|en cazuela} a {240|250} grados.",
            "La {miga|miga del pan} {salió|queda} {apelmazada|cruda} y la {corteza|costra} {blanda|pálida}.",
            "¿Cuántas {horas|vueltas} {fermenta|reposa} una {masa|masa de pan} {en nevera|con mucha agua}?",
        ]
    }
    perros {
        adiestrar [
            "Mi {perro|cachorro} {tira|tiraba} de la {correa|correa larga} y {ladra|ladraba} a {bicicletas|otros perros}.",
            "El {adiestrador|educador canino} {usa|usaba} {premios|refuerzo positivo} en vez de {castigos|collares}.",
            "{Enseñé|Quiero enseñar} {a sentarse|la llamada} a una {perra|perrita adoptada}.",
            "¿Por qué {muerde|destroza} {los muebles|zapatos} cuando {se queda solo|salgo de casa}?",
        ]
        veterinario [
            "El {veterinario|veterinaria} {diagnosticó|descartó} {leishmaniosis|displasia} {al perro|al galgo}.",
            "{Vacuné|Toca vacunar} al {cachorro|perro} contra {la rabia|el moquillo}.",
            "Le {salieron|quité} {garrapatas|pulgas} {en las orejas|después del paseo}; uso {pipetas|un collar antiparasitario}.",
            "¿Es {urgente|normal} que un perro {vomite|cojee} {dos veces|por la mañana}?",
        ]
        pienso [
            "{Cambié|Estoy cambiando} el {pienso|pienso seco} por {comida húmeda|dieta cruda} {poco a poco|de golpe}.",
            "Los {cereales|huesos cocidos} le {sientan|sentaron} mal y {se rasca|tiene diarrea}.",
            "¿Cuántos {gramos|puñados} de {pienso|croquetas} come un {perro|labrador} de {veinte|treinta} kilos?",
            "La {marca|etiqueta} {dice|decía} {salmón|pollo fresco}, pero {casi todo es|lleva} {maíz|harina}.",
        ]
    }
    mexico {
        ruinas [
            "Las {pirámides|ruinas} de {Teotihuacán|Chichén Itzá} {abren|abrieron} a las {ocho|nueve}.",
            "Un {guía|arqueólogo} {explicó|explicaba} el {calendario maya|juego de pelota} en {Uxmal|Palenque}.",
            "¿Se puede {subir|trepar} a la {pirámide|gran pirámide} de {Cobá|Tulum}?",
            "La {zona arqueológica|entrada} {cuesta|costaba} {seiscientos|noventa} pesos para {extranjeros|estudiantes}.",
        ]
        autobus [
            "El {autobús|camión} de {Oaxaca|Puebla} a {la capital|Veracruz} {tarda|tardó} {ocho|seis} horas.",
            "{Compré|Reservé} {boletos|pasajes} de {primera|ADO} {en línea|en la terminal}.",
            "¿Es {seguro|peligroso} {viajar|manejar} de noche por la {carretera|autopista}?",
            "El {vuelo|avión} a {Mérida|Cancún} {se retrasó|fue cancelado} por {el huracán|la tormenta}.",
        ]
        comida [
            "Los {tacos al pastor|tacos} de {la esquina|Coyoacán} {llevan|llevaban} {piña|cilantro}.",
            "El {mole|mole negro} {tiene|lleva} {chocolate|veinte ingredientes} y {chiles|chile pasilla}.",
            "Me {enchilé|enfermé} con {una salsa|un aguachile} {de habanero|en el mercado}.",
            "¿Dónde {se come|venden} {cochinita pibil|chapulines} {auténticos|sin turistas}?",
        ]
    }
    jardin {
        riego [
            "{Instalé|Estoy instalando} {riego por goteo|un programador} en {el huerto|las macetas}.",
            "Los {goteros|tubos} {se obstruyen|se taparon} con la {cal|arena} del {pozo|agua}.",
            "¿Cada cuánto {riegas|se riega} el {césped|limonero} en {julio|plena sequía}?",
            "La {bomba|manguera} {pierde|perdía} {presión|agua} al {abrir|regar} dos {zonas|sectores}.",
        ]
        plagas [
            "Hay {pulgones|pulgón} en los {rosales|pimientos} y {hormigas|cochinilla} {por todas partes|en el tallo}.",
            "{Pulvericé|Apliqué} {jabón potásico|aceite de neem} {al atardecer|contra la mosca blanca}.",
            "Las {hojas|hojas del tomate} {amarillean|tienen manchas} por {mildiu|araña roja}.",
            "¿Las {mariquitas|trampas cromáticas} {controlan|eliminan} la {plaga|mosca}?",
        ]
        poda [
            "{Podé|Hay que podar} los {olivos|rosales} {en febrero|después de las heladas}.",
            "Las {tijeras|tijeras de podar} {desgarran|aplastan} las {ramas|ramas gruesas}.",
            "¿Cuánto se {recorta|rebaja} un {seto|laurel} {demasiado alto|viejo}?",
            "El {injerto|esqueje} del {almendro|cerezo} {prendió|brotó} {en tres semanas|tarde}.",
        ]
    }
    programar {
        excepciones quotes "try {\n    leerArchivo(ruta);\n} catch (NullPointerException e) {\n    registrarError(e);\n}" [
            "{Java lanza|El programa lanza} una {excepción|NullPointerException} al {leer|abrir} el {archivo|fichero}.",
            "¿{Capturo|Debo capturar} {excepciones|errores} {genéricas|específicas} o las {propago|dejo subir}?",
            "El {bloque|bloque finally} {no se ejecuta|oculta} {la traza|el error original}.",
            "La {pila de llamadas|traza} {apunta|apuntaba} a una {línea|clase} que {no existe|no es mía}.",
        ]
        git quotes "git rebase -i main\nCONFLICT (content): Merge conflict in total_factura.py\ngit reset --hard HEAD~1" [
            "{Tengo|Resolví} {conflictos|un conflicto} al {fusionar|hacer merge de} la {rama|rama de desarrollo}.",
            "{Borré|Perdí} un {commit|cambio} con `git reset` y {quiero|pude} {recuperarlo|encontrarlo}.",
            "¿Es {mejor|más limpio} {rebase|reescribir} o {merge|fusión} {en equipo|antes de publicar}?",
            "El {repositorio|repo} {pesa|ocupa} {dos gigas|demasiado} por {binarios|archivos grandes} en la historia.",
        ]
        pruebas quotes "def test_calcula_total_factura():\n    assert calcula_total_factura([10, 20]) == 36.3" [
            "Las {pruebas|pruebas unitarias} {fallan|fallaban} {solo a veces|en el servidor de integración}.",
            "{Simulo|¿Cómo simulo} la {base de datos|hora} con {objetos simulados|mocks}{.|?}",
            "La {cobertura|cobertura del código} {bajó|subió} al {setenta|noventa} por ciento.",
            "¿{Escribes|Conviene escribir} {los tests|las pruebas} {antes|después} del código?",
        ]
    }
    idiomas {
        subjuntivo [
            "¿Cuándo se {usa|emplea} el {subjuntivo|imperfecto de subjuntivo} {después de|tras} {ojalá|aunque}?",
            "Mi {alumna|alumno} {confunde|confundía} {ser y estar|por y para} y los {tiempos|verbos} irregulares.",
            "La {oración|frase} {subordinada|condicional} {exige|pide} {subjuntivo|indicativo}.",
            "{Conjugar|Conjugamos} {verbos|el verbo haber} en {pretérito|futuro} {cuesta|es difícil}.",
        ]
        examen [
            "{Me presento|Aprobé} al {examen|DELE} de nivel {B2|C1} en {mayo|noviembre}.",
            "La {prueba oral|comprensión auditiva} {dura|duró} {veinte|quince} minutos.",
            "¿Qué {libros|simulacros} {ayudan|sirven} para {preparar|aprobar} el {certificado|examen de español}?",
            "El {tribunal|examinador} {corrige|corrigió} la {redacción|pronunciación} con {rigor|calma}.",
        ]
        intercambio [
            "{Busco|Encontré} un {intercambio|compañero} de {conversación|idiomas} {en línea|en un café}.",
            "{Hablamos|Practicamos} {media hora|una hora} en {alemán|japonés} y otra en {español|castellano}.",
            "La {aplicación|tarjeta} de {repaso espaciado|vocabulario} {repite|repetía} las {palabras|frases} difíciles.",
            "¿{Ver series|Escuchar pódcast} con {subtítulos|guion} {mejora|entrena} el {oído|acento}?",
        ]
    }
    salud {
        migrana [
            "La {migraña|jaqueca} {empieza|empezó} con {aura|náuseas} y {dolor|pulsaciones} en {un lado|la sien}.",
            "{Tomo|Probé} {triptanes|ibuprofeno} {cuando empieza|sin efecto} y {evito|evitaba} {el vino|la luz}.",
            "La {neuróloga|doctora} {recetó|propuso} {un diario|magnesio} de {crisis|dolores de cabeza}.",
            "¿Las {migrañas|cefaleas} {empeoran|mejoran} con {la regla|el café}?",
        ]
        sueno [
            "{Me despierto|Se despierta} a las {tres|cuatro} y {no puedo|no consigo} {dormir|conciliar el sueño}.",
            "El {insomnio|insomnio crónico} {mejora|mejoró} con {melatonina|rutinas} y {sin pantallas|menos siestas}.",
            "{Ronco|Mi padre ronca} y el {estudio del sueño|médico} {detectó|sospecha} {apnea|apneas}.",
            "¿Cuántas {horas|siestas} {necesita|duerme} {un adulto|una adolescente}?",
        ]
        rodilla [
            "Me {operaron|van a operar} del {menisco|ligamento cruzado} de la {rodilla|rodilla derecha}.",
            "La {rehabilitación|fisioterapia} {dura|duró} {seis|cuatro} meses con {bicicleta|ejercicios}.",
            "La {articulación|rodilla} {se hincha|cruje} al {subir escaleras|correr}.",
            "¿{Infiltraciones|El ácido hialurónico} {alivian|curan} la {artrosis|tendinitis}?",
        ]
    }
    bicycle {
        frenos [
            "Los {frenos|frenos de disco} {chirrían|rozan} {con lluvia|después de cambiar pastillas}.",
            "{Purgué|Hay que purgar} el {freno|circuito hidráulico} con {aceite mineral|líquido DOT}.",
            "La {maneta|palanca} {llega|llegaba} al {manillar|puño} sin {frenar|fuerza}.",
            "¿Qué {pastillas|zapatas} {duran|frenan} más en {bajadas|barro}?",
        ]
        cadena [
            "La {cadena|cadena de once velocidades} {salta|saltaba} en los {piñones|platos} pequeños.",
            "{Engraso|Limpié} la {cadena|transmisión} con {cera|desengrasante} cada {doscientos|trescientos} kilómetros.",
            "El {cambio|desviador} {no engrana|se desajusta} al {subir|pedalear fuerte}.",
            "¿Cuándo se {cambia|sustituye} el {casete|plato} {gastado|con la cadena}?",
        ]
        electrica [
            "La {batería|batería de litio} de la {bicicleta eléctrica|bici eléctrica} {dura|aguanta} {cuarenta|sesenta} kilómetros.",
            "El {motor|motor central} {se apaga|hace ruido} {en cuestas|con frío}.",
            "¿{Necesito|Exigen} {seguro|casco} para una {bici|bicicleta} con {asistencia|acelerador}?",
            "{Cargué|Cargo} la {batería|bici} {toda la noche|al ochenta por ciento} y {perdió|pierde} autonomía.",
        ]
    }
};

const OPENINGS: &[&str] = &[
    "Hola, {una duda rápida|necesito ayuda}.",
    "{Buenos días|Buenas tardes}, ¿{me puedes ayudar|tienes un momento}?",
    "{Como te decía|Siguiendo con lo de ayer}, {la situación es esta|pasó lo siguiente}.",
    "Claro, {vamos por partes|te explico}.",
    "Gracias, {funcionó|me ayudó mucho}.",
];

const CHATTER: &[&str] = &[
    "{Por favor|Si puedes}, {responde breve|explícalo paso a paso|ponme un ejemplo}.",
    "Ya {probé|leí} {muchas cosas|varias guías}, pero {nada funcionó|cada una dice algo distinto}.",
    "{En general|Como norma}, {empieza poco a poco|apunta todo}, cambia una cosa cada vez y {compara|mira qué pasa}.",
    "Depende {del tiempo que tengas|de tu presupuesto|de lo que quieras}.",
    "{Mi mujer|Mi hermano Tomás|Mi compañera Inés} {cree|dice} que {no es un problema|saldrá bien}.",
    "Si {no funciona|no estás seguro}, {pregunta a alguien con experiencia|escríbeme otra vez con más detalles}.",
    "¿Qué {opinas|recomiendas|sugieres}? ¿Hay {una forma mejor|algo que olvidé}?",
    "{Primero|El primer paso}: haz una lista de {lo que tienes|lo que necesitas}. {Después|Segundo}: decide qué puede esperar.",
    "Por cierto, hoy hace un tiempo {horrible|estupendo} y {los niños están en casa|tengo el día libre}.",
    "Voy a {probarlo|contarte} {mañana|el fin de semana}.",
];

const QUERIES: &[Query] = &[
    (Word, "migraña", "salud/migrana"),
    (Word, "paella", "cocina/paella"),
    (Word, "subjuntivo", "idiomas/subjuntivo"),
    (Word, "hipoteca", "mortgage"),
    (Words, "sierra circular", "carpinteria/sierra"),
    (Words, "ruta sierra gredos", "hiking/rutas"),
    (Words, "banco de trabajo", "carpinteria/banco"),
    (Words, "banco tipo fijo", "mortgage/tipos"),
    (Words, "tortilla de patatas", "cocina/tortilla"),
    (Words, "frenos de disco", "bicycle/frenos"),
    (Words, "tacos al pastor", "mexico/comida"),
    (Words, "riego por goteo", "jardin/riego"),
    (Words, "masa madre vinagre", "cocina/pan"),
    (Inflected, "perros vacunados", "perros/veterinario"),
    (Inflected, "barnizando maderas", "carpinteria/barniz"),
    (Inflected, "podando el olivo", "jardin/poda"),
    (Inflected, "excepción capturada", "programar/excepciones"),
    (Inflected, "amortizaciones", "mortgage/amortizar"),
    (Inflected, "conflicto de ramas", "programar/git"),
    (Unaccented, "piramide maya", "mexico/ruinas"),
    (Unaccented, "autobus oaxaca", "mexico/autobus"),
    (Unaccented, "declaracion plazo", "taxes/plazo"),
    (Unaccented, "migrana nauseas", "salud/migrana"),
    (Unaccented, "bateria bici electrica", "bicycle/electrica"),
    (Unaccented, "esqui de travesia", "hiking/nieve"),
    (Typo, "euribro", "mortgage/tipos"),
    (Typo, "vetrinario", "perros/veterinario"),
    (Typo, "insomio melatonina", "salud/sueno"),
    (Typo, "pulgnes rosales", "jardin/plagas"),
    (Typo, "mochilla litros", "hiking/equipo"),
    (Typo, "subjutivo", "idiomas/subjuntivo"),
    (Prefix, "rehabilit", "salud/rodilla"),
    (Prefix, "adiestra", "perros/adiestrar"),
    (Prefix, "cuota autón", "taxes/autonomos"),
    (Code, "NullPointerException", "programar/excepciones"),
    (Code, "total_factura", "programar/pruebas"),
    (Code, "leer archivo", "programar/excepciones"),
    (Code, "git reset", "programar/git"),
    (Mixed, "mocks base de datos test", "programar/pruebas"),
    (Question, "cómo evito que mi perro tire de la correa", "perros/adiestrar"),
    (Question, "qué pasa si presento tarde la declaración de la renta", "taxes/plazo"),
    (Question, "por qué salta la cadena de mi bicicleta", "bicycle/cadena"),
    (Question, "cuánto caldo hay que poner al arroz de la paella", "cocina/paella"),
    (Question, "quién paga los gastos de notaría de una hipoteca", "mortgage/gastos"),
    (Question, "dónde puedo encontrar a alguien para practicar alemán", "idiomas/intercambio"),
    (Question, "qué alimentación le doy a un perro de treinta kilos", "perros/pienso"),
];
