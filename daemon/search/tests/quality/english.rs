//! Topics and queries in English. `bees`, `rust` and `python` have neighbours that share their words.

use super::judged::{
    Kind::{Code, Inflected, Mixed, Prefix, Question, Typo, Unaccented, Word, Words},
    Language, Query, Topic, topics,
};

pub(crate) const ENGLISH: Language =
    Language { code: "en", topics: TOPICS, openings: OPENINGS, chatter: CHATTER, queries: QUERIES };

const TOPICS: &[Topic] = topics! {
    bees {
        swarm [
            "{Our hive|The colony|One of my colonies} {swarmed|is about to swarm|has been swarming} {twice this spring|since Monday}.",
            "I found {queen cells|a queen cell|several swarm cells} on {the lower frames|two frames|a brood frame}.",
            "Would {splitting the colony|a split|clipping the queen} {prevent|stop} {another swarm|the bees from leaving}?",
            "A {beekeeper|neighbour who keeps bees} caught the cluster of bees from {our pear tree|the fence} with a bait box.",
        ]
        mites [
            "The {varroa|mite} count was {high|above three percent} after the {sugar roll|alcohol wash}.",
            "I {treated|am treating} the {hives|hive} with {oxalic acid|formic acid|thymol strips} in {August|December}.",
            "{Crippled wings|Deformed wings} on the {bees|young workers} show that {varroa mites|the mites} spread a virus.",
            "How often should a beginner {check|count} {mites|varroa} on the {bottom board|sticky board}?",
        ]
        harvest [
            "We {extracted|spun} {twenty jars|thirty kilos} of {honey|light honey} from {the supers|one super}.",
            "The {honey|comb honey} {crystallized|is crystallizing} in the {jars|bucket}.",
            "{Uncapping|Cutting the cappings off} the {honeycombs|combs} took {all afternoon|hours} without a good {extractor|knife}.",
            "Is {nectar|honey} with {twenty|nineteen} percent {moisture|water} too wet to {bottle|store}?",
        ]
    }
    bread {
        starter [
            "My {sourdough starter|starter|levain} {does not rise|stays flat|smells of acetone} {after a week|since I moved}.",
            "I {feed|fed} {it|the starter} with {rye flour|wholemeal flour} and {lukewarm water|filtered water} {twice a day|daily}.",
            "{Hooch|Grey liquid} {gathers|gathered} on top of the {jar|starter} in the {fridge|refrigerator}.",
            "How long can a sourdough culture {survive|rest} {without feeding|unfed} during {holidays|vacation}?",
        ]
        oven [
            "The {crust|bottom crust} {burned|stayed pale|is too thick} in the {Dutch oven|cast iron pot}.",
            "I {bake|baked} the {loaf|loaves} at {240|250} degrees {with steam|with the lid on} for twenty minutes.",
            "{Scoring|Scoring the dough} with a {razor blade|lame} gives {an ear|better oven spring}.",
            "Does a {baking stone|pizza steel} {improve|change} the {bread|rye bread}?",
        ]
        dough [
            "At {eighty|seventy-five} percent hydration the {dough|wet dough} {sticks|stuck} to {everything|my hands}.",
            "{Bulk fermentation|The bulk rise} took {six hours|all night}, and the {crumb|bread} is {dense|gummy}.",
            "I {kneaded|knead} for ten minutes until the {windowpane test|gluten} {worked|developed}.",
            "Are {stretch and folds|coil folds} {better|gentler} than {kneading|a mixer} for {sourdough|wheat dough}?",
        ]
    }
    rust {
        borrow quotes "let first = &mut items;\nlet second = &mut items; // error[E0499]\npush_all(first);" [
            "The {borrow checker|compiler} {complains|says} that I {cannot borrow|borrowed} `items` as mutable {twice|more than once}.",
            "{Rust|rustc} {rejects|refuses} the {mutable reference|second borrow} inside the {loop|closure}.",
            "{Cloning|A clone of} the {vector|struct} {silences|fixes} the {borrowing error|ownership error}, but feels wrong.",
            "Is `RefCell` the {usual|right} way around {borrowing rules|the borrow checker}?",
        ]
        lifetimes quotes "struct Parser<'a> { input: &'a str }\nfn parse_config_file<'a>(input: &'a str) -> Parser<'a>" [
            "{Rust wants|The compiler asks for} a {lifetime|lifetime parameter} on the {struct|returned reference}.",
            "The {string slice|value} does not {live|outlive} long enough, says {rustc|the error}.",
            "When do I {need|have to write} {explicit lifetimes|lifetime annotations} instead of {elision|owned strings}?",
            "{Returning|I return} a {reference|slice} to a {local variable|temporary} is {impossible|an error} in Rust.",
        ]
        async quotes "#[tokio::main]\nasync fn main() { let handle = tokio::spawn(fetchAllPages(client)); handle.await; }" [
            "A {tokio|Tokio} {task|runtime} {hangs|blocks} because I {hold|held} a mutex {across|over} an await.",
            "The {future|async block} is not `Send`, so {spawning|`tokio::spawn`} {fails|does not compile}.",
            "{Cancelling|Dropping} the {future|task} {lost|loses} {buffered data|half a message} in the {stream|channel}.",
            "Should an {async function|async trait} in Rust {return|give} a {boxed future|stream}?",
        ]
    }
    car {
        corrosion [
            "There is {rust|surface rust} {on the sill|under the wheel arch|around the tailgate} of my {old Volvo|van}.",
            "I {sanded|am sanding} the {rusty|rusted} {panel|metal} and put on {primer|rust converter}.",
            "The {inspector|garage} {failed|rejected} the {car|vehicle} because the {underbody|frame} was corroded.",
            "How do I {stop|prevent} {rust|corrosion} from {coming back|spreading} below the paint?",
        ]
        battery [
            "The {engine|car} does not {start|crank}; the {starter|starter motor} only {clicks|makes a clicking noise}.",
            "I {measured|measure} {eleven|twelve} volts on the {battery|car battery} after {one night|a cold night}.",
            "{Jump starting|A jump start} with {cables|a booster pack} {worked|helps}, so the alternator {may be dead|is weak}.",
            "Which {fuse|relay} {feeds|belongs to} the {ignition|starter} in a {diesel|petrol car}?",
        ]
        tyres [
            "The {tyres|winter tyres} are {six|seven} years old and {worn|cracked} on {the inside|both edges}.",
            "{Wheel alignment|The alignment} {costs|cost} {ninety|sixty} pounds after I {hit|drove over} a {kerb|pothole}.",
            "The {tyre pressure|pressure} {light|warning} {stays|stayed} on after {inflating|I inflated} all four.",
            "Can I {mix|fit} {summer tyres|all-season tyres} of {two|different} brands on one axle?",
        ]
    }
    taxes {
        deductions [
            "Can I {deduct|write off} my {home office|desk|laptop} {in my tax return|from my taxes}?",
            "The {accountant|tax adviser} {claimed|claims} {mileage|travel expenses} and {professional fees|training}.",
            "{Receipts|Invoices} for {donations|charity} {reduce|reduced} the {taxable income|tax bill}.",
            "Which {expenses|costs} are {deductible|allowed} for {the self-employed|freelancers}?",
        ]
        deadline [
            "I {missed|am going to miss} the {filing deadline|deadline} for the {tax return|self assessment}.",
            "{The tax office|HMRC} {charges|charged} a {late filing penalty|penalty of a hundred pounds}.",
            "Can one {ask for|request} {an extension|more time} {to file|for filing} {taxes|the return}?",
            "{Interest|A fine} {is added|was added} for every {month|day} that the {payment|tax} is {overdue|late}.",
        ]
        vat [
            "Do I {charge|have to charge} {VAT|value added tax} on {invoices|an invoice} to a {client|customer} in {Norway|Ireland}?",
            "My {turnover|revenue} {passed|exceeds} the {VAT threshold|registration threshold} this {quarter|year}.",
            "The {reverse charge|reverse charge rule} {applies|applied} to {services|consulting} for {businesses|companies} abroad.",
            "{Input tax|The VAT I paid} on {equipment|software} can be {reclaimed|claimed back}.",
        ]
    }
    japan {
        trains [
            "Is the {rail pass|Japan Rail Pass} {worth it|cheaper} for {Tokyo|Osaka} and {Kyoto|Hiroshima}?",
            "We {reserved|are reserving} {seats|window seats} on the {shinkansen|bullet train} {to Kanazawa|for Friday}.",
            "{Suica|An IC card} {works|worked} on {subways|buses and the metro} in {most cities|Sapporo}.",
            "Large {suitcases|luggage} {need|needs} a {reservation|reserved space} on {bullet trains|the Nozomi}.",
        ]
        lodging [
            "A {ryokan|traditional inn} with {tatami|a hot spring} costs {a lot|two hundred euros} {a night|per person}.",
            "Are {tattoos|tattooed guests} {allowed|accepted} in {an onsen|hot springs|public baths}?",
            "The {capsule hotel|hostel} in {Shinjuku|Ueno} {had|has} {tiny lockers|no breakfast}.",
            "We {booked|want to book} a {guesthouse|machiya} in {Kyoto|Nara} for the {cherry blossoms|autumn leaves}.",
        ]
        food [
            "{Ramen|The ramen} near {Fukuoka station|the market} was the best {broth|soup} of our {trip|journey}.",
            "How does a {vegetarian|vegan} avoid {fish stock|dashi} in {Japanese restaurants|izakayas}?",
            "The {sushi|conveyor belt sushi} {counter|restaurant} takes {no reservations|only cash}.",
            "We {ate|tried} {okonomiyaki|takoyaki} at a {street stall|festival} in Osaka.",
        ]
    }
    python {
        packaging quotes "python -m venv .venv\npip install -r requirements.txt\nModuleNotFoundError: No module named 'requests'" [
            "{pip|Pip} {installs|installed} the {package|library} into the wrong {virtual environment|virtualenv|interpreter}.",
            "The {wheel|package} {build|upload} {fails|failed} because `pyproject.toml` {misses|lacks} a {version|build backend}.",
            "{Poetry|uv} {resolves|resolved} {dependencies|conflicting dependencies} {slowly|in a second}.",
            "Should one {pin|lock} {versions|dependencies} of a Python {application|script}?",
        ]
        pandas quotes "df = pd.read_csv('orders.csv')\nmonthly_totals = df.groupby('month')['net_amount'].sum()" [
            "{Pandas|The dataframe} {shows|prints} a {SettingWithCopy warning|warning} when I {assign|change} a column.",
            "{Merging|I merge} two {dataframes|tables} {duplicates|duplicated} {rows|thousands of rows}.",
            "{Grouping|A groupby} by {month|customer} {gives|returns} {missing values|NaN} for {empty groups|dates}.",
            "How do I {pivot|reshape} a {long table|dataframe} into {wide|columns}?",
        ]
        decorators quotes "@functools.lru_cache\ndef getUserProfile(user_id):\n    return session.query(User).get(user_id)" [
            "A {decorator|Python decorator} with {arguments|parameters} {needs|has} three {nested functions|levels}.",
            "{Caching|Memoizing} a {method|function} with `lru_cache` {keeps|kept} {instances|objects} alive.",
            "{Type hints|The annotations} of the {wrapped|decorated} function {get lost|disappear} without `functools.wraps`.",
            "Are {class decorators|metaclasses} {readable|good style} in Python?",
        ]
    }
    snake {
        feeding [
            "My {ball python|python|royal python} {refuses|refused|won't take} {thawed mice|a rat|frozen rats} {since October|for weeks}.",
            "I {feed|fed} the {snake|hatchling} {once a week|every ten days} with {tongs|tweezers}.",
            "The {python|young snake} {regurgitated|threw up} its {meal|mouse} after {handling|I held it}.",
            "Is a {hunger strike|fasting snake} {normal|dangerous} in {winter|breeding season}?",
        ]
        shedding [
            "The {shed|skin} came off in {pieces|patches}, and one {eye cap|spectacle} is still {stuck|on}.",
            "{Humidity|The humidity} {fell|dropped} below {fifty|forty} percent before the {snake|python} {shed|was shedding}.",
            "A {moist hide|wet box} with {moss|sphagnum} {helps|helped} with {a bad shed|stuck skin}.",
            "Should I {soak|bathe} a {snake|python} that has {trouble shedding|retained shed}?",
        ]
        terrarium [
            "The {heat mat|basking lamp} in the {terrarium|vivarium} {reaches|reached} {35|33} degrees.",
            "A {thermostat|controller} {keeps|kept} the {warm side|hot spot} of the {enclosure|tank} constant.",
            "{Coconut fibre|Aspen bedding} is the {substrate|bedding} that {I use|a breeder recommends} for {pythons|snakes}.",
            "How {large|big} must the {enclosure|terrarium} of an {adult snake|adult python} be?",
        ]
    }
    running {
        plan [
            "My {marathon|half marathon} {training|plan} has {four|five} {runs|sessions} a week and one {long run|tempo run}.",
            "{Intervals|Interval training} on {the track|Tuesdays} {improved|improves} my {pace|lactate threshold}.",
            "How do I {taper|reduce the distance} in the {last|final} {two weeks|weeks} before {the race|a marathon}?",
            "I {ran|run} {ten|fifteen} kilometres in {zone two|an easy pace} with {a heart rate monitor|a friend}.",
        ]
        injury [
            "My {knee|left knee} {hurts|is aching} on the {outside|inside} after {running|runs} {downhill|on asphalt}.",
            "The {physiotherapist|doctor} {suspects|found} {runner's knee|an IT band problem|shin splints}.",
            "{Stretching|Foam rolling} the {calves|hamstrings} {relieves|relieved} the {pain|ache} in my Achilles tendon.",
            "How long should a runner {rest|pause} with {an inflamed tendon|plantar fasciitis}?",
        ]
        shoes [
            "{These shoes|My running shoes} {rub|gave me blisters} at the {heel|little toe}.",
            "Are {carbon plates|carbon shoes} {worth|useful} for {slow runners|a first marathon}?",
            "After {seven hundred|eight hundred} kilometres the {cushioning|sole} of the {trainers|sneakers} is {gone|worn out}.",
            "The {shop|gait analysis} {recommended|advised} {stability shoes|insoles} for {overpronation|flat feet}.",
        ]
    }
    fishing {
        trout [
            "The {trout|brown trout} {rise|rose} along the {river bank|bank} at {dusk|sunset}.",
            "A {dry fly|small nymph} on a {thin line|five weight rod} {works|worked} {best|in clear water}.",
            "I {tie|tied} {flies|my own flies} with {pheasant feathers|deer hair}.",
            "How do you {cast|roll cast} with trees {behind you|on the bank}?",
        ]
        licence [
            "Do {children|tourists} need a {rod licence|fishing licence|fishing permit} for {the canal|this lake}?",
            "The {warden|water bailiff} {checked|checks} {permits|licences} on {Sundays|the weekend}.",
            "{Salmon|Pike} is {protected|out of season} {until May|in spring}; the {closed season|fine} is {strict|expensive}.",
            "The {angling club|club} {sells|sold} {day tickets|annual permits} for the {stretch|river}.",
        ]
        carp [
            "{Carp|A mirror carp} {took|takes} {boilies|sweetcorn} {near the reeds|at night}.",
            "My {bite alarm|float} {never moves|beeps all night} on the {pond|reservoir}.",
            "A {hair rig|bolt rig} {hooks|hooked} {big fish|carp} {better|safely}.",
            "Which {ground bait|bait} {attracts|attracted} {carp|tench} in cold water?",
        ]
    }
    mortgage {
        interest [
            "The {bank|building society} {offers|offered} a {fixed rate|fixed mortgage} of {four|five} percent for ten years.",
            "{Interest rates|Rates} {rise|are rising}, so our {monthly payment|instalment} {jumps|jumped}.",
            "Is a {variable rate|tracker mortgage} {riskier|cheaper} than {fixing|a fixed one}?",
            "The {lender|bank} {wants|wanted} a {deposit|down payment} of twenty percent for the {house|flat}.",
        ]
        repayment [
            "Can we {repay|pay off} the {mortgage|loan} {early|before the term ends} without a {penalty|fee}?",
            "{Overpaying|An overpayment of} {two hundred|a hundred} a month {saves|saved} {years|thousands}.",
            "The {early repayment charge|redemption fee} is {three|two} percent of the {balance|remaining debt}.",
            "We {inherited|sold a car} and would {clear|reduce} the {loan|home loan} instead of {saving|investing}.",
        ]
        remortgage [
            "We {remortgaged|want to remortgage} with {another lender|a new bank} when the {deal|fixed term} {ended|ends}.",
            "The {broker|mortgage broker} {compares|compared} {offers|lenders} and takes {a commission|no fee}.",
            "{Refinancing|To refinance} {needs|needed} a new {valuation|survey} of the {property|house}.",
            "Do {solicitors|legal fees} cost {much|extra} when {switching|one switches} the mortgage?",
        ]
    }
    database {
        indexes quotes "EXPLAIN ANALYZE SELECT * FROM orders WHERE customer_id = 42;\nCREATE INDEX idx_orders_customer ON orders (customer_id);" [
            "The {query|SQL query} {takes|took} {nine seconds|minutes} because Postgres {does|did} a {sequential scan|full scan}.",
            "{An index|A partial index} on the {foreign key|date column} {made|makes} it {fast|faster}.",
            "The {planner|query planner} {ignores|ignored} the {index|composite index} after {an upgrade|bulk loading}.",
            "How do I {read|interpret} {EXPLAIN|a query plan} with {nested loops|hash joins}?",
        ]
        backups quotes "pg_dump --format=custom shop_db > nightly.dump\npg_restore --clean --dbname=shop_db nightly.dump" [
            "The {nightly backup|dump} with `pg_dump` {locks|blocked} {nothing|a migration}.",
            "{Restoring|I restored} the {dump|database} {failed|took hours} on a {different version|smaller machine}.",
            "{Point in time recovery|WAL archiving} {saved|saves} us after {a dropped table|somebody deleted rows}.",
            "How often should {backups|database backups} be {tested|restored}?",
        ]
        migrations quotes "ALTER TABLE users ADD COLUMN last_seen_at timestamptz;\nclass AddLastSeenToUsers < ActiveRecord::Migration" [
            "A {migration|schema migration} that {adds|added} a {column|not null column} {locks|locked} the {table|users table}.",
            "We {rename|renamed} {columns|a column} in {three steps|two releases} without {downtime|an outage}.",
            "{Rolling back|A rollback of} the {migration|schema change} {lost|loses} {data|the new values}.",
            "Should {migrations|schema changes} run {automatically|in the deployment pipeline}?",
        ]
    }
};

const OPENINGS: &[&str] = &[
    "Hi, {quick question|I need some help}.",
    "{Good morning|Hello}, {can you help me|I hope you can help}?",
    "{As I said before|Following up on yesterday}, here is {the situation|what happened}.",
    "Sure, {let us go through it|here is what I would do}.",
    "Thanks, that {worked|helped a lot}!",
];

const CHATTER: &[&str] = &[
    "{Please|Could you} {keep it short|explain it step by step|give me an example}.",
    "I have {tried|read} {a few things|several guides} already, but {nothing helped|they contradict each other}.",
    "{In general|As a rule}, {start small|take notes}, change one thing at a time, and {compare the results|see what happens}.",
    "It depends on {how much time you have|your budget|what you want to achieve}.",
    "{My wife|My brother Tom|My colleague Priya} {thinks|says} that it {is not a problem|will be fine}.",
    "If {this does not work|you are not sure}, {ask somebody with experience|write again and tell me more}.",
    "What do you {think|recommend|suggest}? Is there {a better way|something I forgot}?",
    "{First|The first step}: make a list of {what you have|what you need}. {Second|Then}: decide what can wait.",
    "By the way, the weather is {awful|lovely} today and {the kids are at home|I have the whole day free}.",
    "I will {try that|report back} {tomorrow|on the weekend}.",
];

const QUERIES: &[Query] = &[
    (Word, "varroa", "bees/mites"),
    (Word, "sourdough", "bread"),
    (Word, "marathon", "running/plan"),
    (Word, "mortgage", "mortgage"),
    (Word, "shinkansen", "japan/trains"),
    (Words, "queen cells", "bees/swarm"),
    (Words, "borrow checker", "rust/borrow"),
    (Words, "rust wheel arch", "car/corrosion"),
    (Words, "python thawed mice", "snake/feeding"),
    (Words, "starter motor clicking", "car/battery"),
    (Words, "river bank trout", "fishing/trout"),
    (Words, "early repayment penalty", "mortgage/repayment"),
    (Words, "sourdough starter acetone", "bread/starter"),
    (Words, "tattoo onsen", "japan/lodging"),
    (Inflected, "swarms", "bees/swarm"),
    (Inflected, "deducting expenses", "taxes/deductions"),
    (Inflected, "crystallize honey", "bees/harvest"),
    (Inflected, "treat hive mites", "bees/mites"),
    (Inflected, "remortgaging", "mortgage/remortgage"),
    (Inflected, "kneading doughs", "bread/dough"),
    (Inflected, "snakes sheds", "snake/shedding"),
    (Unaccented, "capsule hotels shinjuku", "japan/lodging"),
    (Typo, "varoa mites", "bees/mites"),
    (Typo, "sourdoug starter", "bread/starter"),
    (Typo, "marathn training", "running/plan"),
    (Typo, "fishing lisence", "fishing/licence"),
    (Typo, "terarium heat mat", "snake/terrarium"),
    (Typo, "physiotherapst knee", "running/injury"),
    (Typo, "shinkasen seats", "japan/trains"),
    (Prefix, "remortg", "mortgage/remortgage"),
    (Prefix, "decorat", "python/decorators"),
    (Prefix, "tax deduct", "taxes/deductions"),
    (Prefix, "bulk ferment", "bread/dough"),
    (Code, "pg_dump", "database/backups"),
    (Code, "lru_cache", "python/decorators"),
    (Code, "user profile", "python/decorators"),
    (Code, "parse_config", "rust/lifetimes"),
    (Code, "groupby net_amount", "python/pandas"),
    (Code, "fetch all pages", "rust/async"),
    (Mixed, "E0499 mutable borrow", "rust/borrow"),
    (Question, "how do I stop my bees from swarming", "bees/swarm"),
    (Question, "why is my sourdough bread so dense", "bread/dough"),
    (Question, "what happens if I miss the deadline for my tax return", "taxes/deadline"),
    (Question, "how can I make a slow postgres query faster", "database/indexes"),
    (Question, "my car won't start in the morning", "car/battery"),
    (Question, "when should I replace old winter tyres", "car/tyres"),
    (Question, "do I need to charge VAT for foreign customers", "taxes/vat"),
    (Question, "where can vegetarians eat in Japan", "japan/food"),
];
