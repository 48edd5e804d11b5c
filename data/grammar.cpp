// SPDX-License-Identifier: MIT
#include "data/grammar.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "data/corpus.h"
#include "engine/base/error.h"
#include "engine/base/random.h"

namespace masquerade {
namespace {

// A rule is a name, a colon and alternatives, separated by |. In an alternative, {name} stands for a random
// alternative of the rule with this name. An indented line continues the rule above. Two rules that a question
// compares ({west} and {east}, {indoors} and {outdoors}) have no alternative in common.
constexpr const char* rules =
    R"(question: {who}|{what}|{what}|{where}|{where}|{when}|{how}|{how}|{how}|{quantity}|{quantity}|{why}|{why}
    |{which}|{polar}|{polar}|{request}|{request}|{choice}
who: Who invented {invention}?|Who is going to {chore} {soon}?|Who taught {person} how to {skill}?
    |Who left {a_thing} {somewhere}?|Whose {belonging} is {somewhere}?
    |Who lives in the {colour} house {beside}?|Who was the first person to {feat}?
    |Who should I ask about {topic}?|Who wants to {outdoors} {soon}?|Who do you call when {trouble}?
what: What is the capital of {country}?|What language do people speak in {country}?
    |What does the word {word} mean?|What is the difference between {pair}?
    |What time does {event} start {soon}?|What is the best way to {skill}?|What should I wear to {event}?
    |What did {person} say about {topic}?|What happens if {trouble}?|What do {animals} eat {season}?
    |What kind of {belonging} does {person} have?|What are you doing {soon}?
    |What would you do with {number} {things}?|What is {a_thing} doing {somewhere}?
    |What colour is {person_s} {belonging}?|What is the weather like in {city} {season}?
    |What should we cook with {food} and {spice}?
where: Where can I buy {a_thing} in {city}?|Where is the nearest {place}?
    |Where did {person} put the {belonging}?|Where do {animals} go {season}?
    |Where does {event} take place {soon}?|Where did you learn to {skill}?|Where should we {outdoors} {soon}?
    |Where do I change trains on the way from {west} to {east}?
    |Where can {person} find a cheap {place} in {city}?|Where does {food} come from?
    |Where is the {place} that {person} told us about?|Where were you when {trouble}?
when: When does the next {vehicle} to {city} leave?|When did {person} move to {city}?
    |When will the {place} open again?|When is the best time to visit {country}?
    |When was {invention} invented?|When do {animals} have their young?|When are you going to {chore}?
    |When did {person} learn to {skill}?|How late does the {place} {beside} close {soon}?
    |When should I plant {plants}?|Since when does {person} like {food}?
how: How do I {skill}?|How do you say {word} in {language}?|How do you spell {word}?
    |How do {animals} find their way home?|How did {person} get from {west} to {east}?
    |How can I {chore} without {tool}?|How does {invention} work?|How was {event}?
    |How hot does it get in {city} {season}?|How do I get to the {place} {beside}?
    |How do you cook {food} with {spice}?|How would you explain {topic} to a child?|How is {person} today?
    |How can we help when {trouble}?|How should {person} {chore} {soon}?
    |How do I keep {animals} out of the garden?
quantity: How many {things} does {person} own?|How far is it from {west} to {east}?
    |How long does it take to {skill}?|How much does {a_thing} cost in {country}?|How often do you {indoors}?
    |How old is {person_s} {belonging}?|How many {facts}?|How much {food} do I need for {number} people?
    |How many people live in {city}?|How long can {animals} live?|How much is {number} times {number}?
    |How many days are there until {event}?|How many hours does the {vehicle} from {west} to {east} take?
    |How heavy is {a_thing}?|How many {things} fit into {a_box}?|How long have you lived in {city}?
    |How soon can you {chore}?
why: Why do {truth}?|Why is {state}?|Why did {person} {chore} so early?|Why does {person} never {indoors}?
    |Why did you buy {number} {things}?|Why is there {a_thing} {somewhere}?
    |Why was the {vehicle} to {city} late?|Why are you afraid of {animals}?|Why should anyone {skill}?
    |Why is {food} so expensive in {country}?|Why do so many people move to {city}?
    |Why does my {belonging} smell of {spice}?|Why can't I {outdoors} {soon}?
which: Which is {compared}, {small_animal} or {big_animal}?|Which city is {city_compared}, {west} or {east}?
    |Which {vehicle} goes to the {place}?|Which of these {things} belongs to {person}?
    |Which {place} in {city} do you like best?
    |Which language is harder to learn, {language} or {old_language}?
    |Which month is best for {activity} in {country}?|Which tastes better with {spice}, {food} or {dessert}?
polar: Is it true that {truth}?|Have you ever {done}?|Did {person} {chore} {lately}?
    |Is {event} still on {soon}?|Do you know how to {skill}?|Are there any {animals} in {country}?
    |Is there a {place} {beside}?|Does {person} speak {language}?|Is {person_s} {belonging} really {colour}?
    |Would {person} like {a_thing}?|Do {animals} like {food}?|Has {person} ever {done}?
    |Was it {person} who wanted to {outdoors}?|Is {city} {city_compared} than it used to be?
    |Are these {things} yours?|Is it hard to {skill}?|Did you remember to {chore} {lately}?
    |Should I worry if {trouble}?|Is {number} {things} too many?
request: Could you lend me {a_thing} for {duration}?|May I borrow your {belonging} for {duration}?
    |Can you help me {chore} {soon}?|Would you mind if I {indoors_past} here?
    |Can you recommend a {place} in {city}?|Could you tell me where the {place} is?
    |Would you show {person} how to {skill}?|Can I have the {food} without {spice}, please?
    |Could we {outdoors} {soon}?|Will you come to {event} with me?|Can I pay for the {belonging} {soon}?
    |Do you have a room for {number} people {soon}?|Could you wake me when the {vehicle} reaches {city}?
choice: Would you rather {indoors} or {outdoors}?|Shall we take the {vehicle} or walk to the {place}?
    |Do you prefer {food} or {dessert}?|Should I learn {language} or {old_language}?
    |Is the meeting about {topic} in {west} or in {east}?|Do I need {a_thing} or {tool} to {chore}?
    |Are you for {small_animal} or for {big_animal} as a pet?
person: {relative}|{relative}|{name}|{name}|the teacher|the doctor|the mayor|our neighbour|the new cook
    |the postman|the bus driver|your boss|the tall librarian|the old fisherman
person_s: {relative}'s|{name}'s|the teacher's|our neighbour's|your boss's|the mayor's
relative: my sister|my brother|your mother|your father|her uncle|his aunt|our grandmother|their cousin
    |my best friend|his wife|her husband|your daughter|my little nephew
name: Anna|Peter|Maria|David|Sofia|Thomas|Fatima|Ivan|Keiko|Lucas|Nora|Samuel|Elena|Omar|Ingrid|Mateo|Priya
    |Hugo
city: {west}|{east}
west: Lisbon|Madrid|Dublin|London|Paris|Lyon|Amsterdam|Brussels|Porto|Geneva|Bristol|Seville|Glasgow|Bordeaux
east: Vienna|Prague|Warsaw|Budapest|Athens|Helsinki|Istanbul|Riga|Sofia|Tbilisi|Krakow|Belgrade|Tallinn
    |Bucharest
country: Portugal|Norway|Japan|Brazil|Kenya|Canada|Italy|Peru|Iceland|Vietnam|Morocco|Finland|Chile|Greece
    |Nepal|Ireland|Mexico|Poland|Australia|Egypt|Turkey|Switzerland
language: Spanish|French|German|Japanese|Arabic|Swahili|Portuguese|Polish|Turkish|Korean|Finnish|Hindi
old_language: Latin|ancient Greek|Sanskrit|Old Norse|Aramaic|Coptic
word: "thank you"|"butterfly"|"tomorrow"|"library"|"breakfast"|"umbrella"|"lighthouse"|"rhythm"|"neighbour"
    |"cheese"|"goodbye"|"thunder"|"queue"|"spoon"
place: bakery|library|pharmacy|post office|swimming pool|museum|train station|bookshop|bank|market|hospital
    |cinema|playground|petrol station|restaurant|hotel|laundry|zoo|theatre|hairdresser|bicycle shop
    |fire station
beside: next to the church|behind the school|across the river|near the harbour|at the end of the street
    |by the old bridge|opposite the town hall|on the hill|around the corner|below the castle
somewhere: on the kitchen table|under the bed|in the garden|on the roof|behind the sofa|in the bathroom
    |on the stairs|in my bag|at the front door|on the piano|in the cellar|next to the window
belonging: bicycle|camera|watch|guitar|suitcase|raincoat|telescope|wallet|scarf|tent|car|violin|boat|notebook
    |hat|laptop|sleeping bag|coffee machine
a_thing: a ladder|an umbrella|a sewing machine|a map|a pair of boots|a radio|an alarm clock|a wooden spoon
    |a kite|a fishing rod|a warm blanket|a chess set|a bag of apples|an old typewriter|a bunch of flowers
    |a lamp|a frying pan|a rucksack|an electric heater|a rocking chair
tool: a hammer|a screwdriver|a long rope|a torch|a bucket|sticky tape|a saw|a pair of scissors|a spade
a_box: a shoe box|this suitcase|a small car|one cupboard|a lift|the bathtub|that drawer|a lorry
things: books|candles|bottles|pencils|postcards|old coins|eggs|keys|teacups|tickets|buttons|balloons|lemons
    |pillows|paintings|bricks|shoes|blankets|clocks|marbles
number: two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty
    |ninety|a hundred|a thousand|14|16|18|24|25|36|48|75|120|250|365|400
colour: red|blue|green|yellow|white|black|purple|orange|pink|brown|grey
vehicle: train|bus|ferry|night train|tram|plane|coach
season: in winter|in spring|in summer|in autumn|in January|in April|in July|in October|at night|during the day
    |after the rain|when it snows
soon: tomorrow|tonight|this afternoon|next week|on Monday|on Tuesday|on Friday|on Saturday|on Sunday|at noon
    |at eight o'clock|next month|this weekend|before dinner|in the morning|after lunch
lately: yesterday|last night|this morning|last week|on Monday|on Thursday|before breakfast|two days ago
    |last month|after the party
duration: an hour|a day|a few minutes|the weekend|a week|two days|one evening|the whole summer|half an hour
event: the concert|the wedding|the football match|the school play|the chess tournament|the meeting
    |the birthday party|the flower market|the lecture|the exhibition|the boat race|the dance class
    |the film festival
topic: the weather|the new bridge|black holes|the election|gravity|taxes|the moon|the holiday plans|inflation
    |dinosaurs|electric cars|the rent|volcanoes|the broken window|compound interest|climate change
    |the lost dog
food: rice|lentil soup|bread|fish|mushrooms|pasta|cheese|potatoes|chicken|tofu|cabbage|beans|porridge|tomatoes
    |noodles|aubergine
spice: garlic|ginger|pepper|mint|curry|salt|onions|vinegar|cinnamon|chilli|basil|mustard
dessert: apple pie|ice cream|chocolate cake|pancakes|rice pudding|plum tart|strawberries|waffles
plants: tulips|carrots|an apple tree|onions|roses|sunflowers|garlic|pumpkins|lettuce|lavender|strawberries
animals: owls|bees|hedgehogs|foxes|swallows|bears|frogs|squirrels|salmon|wolves|turtles|cats|pigeons|bats
    |snails|deer|penguins|elephants|otters|storks
small_animal: a mouse|a sparrow|a cat|a frog|a rabbit|a hen|a hedgehog|a lizard|a duck|a parrot
big_animal: a horse|a camel|an ostrich|a polar bear|a giraffe|a cow|a dolphin|a tiger|an elephant|a crocodile
compared: faster|cleverer|stronger|louder|more dangerous|easier to feed|hungrier|rarer|cheaper to keep
city_compared: bigger|older|quieter|more expensive|warmer|cleaner|greener|busier|safer|further north
invention: the telephone|the zip|the microscope|the bicycle|the light bulb|the printing press|the compass
    |paper|the steam engine|the refrigerator|the parachute|the piano|radar|the lift|the calculator
    |the telescope|glass|the vacuum cleaner
skill: bake bread|learn to swim|play chess|fix a flat tyre|sew a button|knit a scarf|tie a bow tie|read a map
    |ride a horse|light a fire without matches|write a good letter|build a tree house|train a puppy
    |play the guitar|sharpen a knife|brew coffee|grow tomatoes|fold a paper crane|drive a tractor
    |juggle with three balls|solve a quadratic equation|speak {language}|make cheese|repair a watch
    |whistle with two fingers
chore: wash the windows|water the plants|feed the cat|clean the kitchen|paint the fence|take out the rubbish
    |lock the front door|sell the old car|mow the lawn|repair the roof|pack the suitcases
    |pay the electricity bill|post the letters|book the tickets|sweep the yard|change the light bulb
    |iron the shirts|move the piano|walk the dog|return the library books
indoors: read a novel|play cards|watch a film|cook dinner|listen to the radio|write letters|take a nap
    |practise the violin|do a crossword|bake a cake|dance in the kitchen|sleep until noon
indoors_past: read a novel|played cards|watched a film|cooked dinner|listened to the radio|took a nap
    |practised the violin|opened the window|sat down|parked my {belonging}|made a phone call
outdoors: go for a walk|swim in the lake|climb the mountain|have a picnic|fly a kite|go sailing
    |ride along the river|pick mushrooms|watch the stars|sleep in a tent|feed the ducks|go skiing|visit {name}
activity: hiking|sailing|skiing|surfing|cycling|bird watching|camping|picking grapes|diving|fishing
done: seen a whale|been to {country}|slept under the stars|broken an arm|eaten {food} with {spice}
    |ridden a camel|missed the last train|written a poem|won a prize|met a famous person|milked a cow
    |flown in a balloon|lived without a telephone|found a four-leaf clover|swum across a lake
    |got lost in {city}|lost a {belonging}
feat: walk on the moon|climb the highest mountain|sail around the world|cross {country} on foot
    |reach the South Pole|fly across the Atlantic|swim across the Channel|see a living cell
    |draw a map of {country}|translate "{book}"
book: The Iliad|Don Quixote|War and Peace|Moby Dick|Alice in Wonderland|The Little Prince|Pinocchio
trouble: the lights go out|the car does not start|the river floods|{person} misses the {vehicle}
    |the cat climbs too high|the milk turns sour|it rains on the day of {event}|the key breaks in the lock
    |the phone rings at night|a tree falls on the road|the baby does not stop crying|the {place} is closed
    |the computer loses a file
truth: cats purr|leaves turn red in autumn|birds fly south|stars twinkle|onions make us cry|bees dance
    |volcanoes erupt|the tides follow the moon|camels store fat in their humps|bats sleep upside down
    |sunflowers turn to the sun|people yawn|mosquitoes bite some people more than others|rivers bend
    |magnets lose their strength|dogs wag their tails|salmon swim upstream|old books smell sweet
    |cold drinks make a glass wet|mirrors swap left and right|airplanes leave white trails
    |roosters crow at dawn|children grow faster in spring|bridges hum in the wind
state: the sky blue|the sea salty|snow white|ice slippery|gold so heavy|the night so dark
    |the desert cold at night|glass transparent|yawning contagious|the {place} closed|the {vehicle} so full
    |{city} so popular|the grass still wet|the soup so salty|the door {colour}|{person} so late
    |everybody so quiet|the milk sour|copper used for wires|a year 365 days long|the moon sometimes red
    |{person_s} {belonging} broken
pair: a frog and a toad|weather and climate|a comet and a meteor|jam and marmalade|a violin and a viola
    |speed and velocity|a lake and a pond|butter and margarine|a hare and a rabbit|mass and weight
    |fog and mist|a crocodile and an alligator|a ship and a boat|stalactites and stalagmites
    |a village and a town|sunrise and dawn|a virus and a bacterium|{language} and {old_language}
facts: legs does a spider have|strings does a violin have|minutes are there in a day|teeth does an adult have
    |players are there in a football team|planets orbit the sun|keys does a piano have
    |letters are there in the alphabet|hearts does an octopus have|sides does a hexagon have
    |bones are there in the human body|days does February have|metres are there in a mile
    |colours are there in a rainbow|weeks are there in a year|squares does a chessboard have
    |grams are there in a pound|wings does a bee have|islands belong to {country}
    |languages does {person} speak|bridges are there in {city}|{things} are there {somewhere})";

using Grammar = std::unordered_map<std::string, std::vector<std::string>>;  // rule name -> alternatives

Grammar parse_rules() {
    Grammar grammar;
    std::vector<std::string>* alternatives = nullptr;
    std::istringstream lines(rules);
    for (std::string line; std::getline(lines, line);) {
        std::size_t begin = line.find(line[0] == ' ' ? '|' : ':') + 1;
        if (line[0] != ' ') alternatives = &grammar[line.substr(0, begin - 1)], begin++;
        std::istringstream rest(line.substr(begin));
        for (std::string alternative; std::getline(rest, alternative, '|');) alternatives->push_back(alternative);
    }
    return grammar;
}

// Appends a random expansion of the rule `name`.
void expand(const std::string& name, Sequence& random, std::string& sentence) {
    static const Grammar grammar = parse_rules();
    const std::vector<std::string>& alternatives = grammar.at(name);
    std::string_view rest = alternatives[random.below(std::uint32_t(alternatives.size()))];
    while (!rest.empty()) {
        const std::size_t open = std::min(rest.find('{'), rest.size());
        sentence += rest.substr(0, open);
        rest.remove_prefix(open);
        if (rest.empty()) break;
        const std::size_t close = rest.find('}');
        expand(std::string(rest.substr(1, close - 1)), random, sentence);
        rest.remove_prefix(close + 1);
    }
}

}  // namespace

std::vector<std::string> grammar_questions(std::uint64_t seed, int count) {
    Sequence random(seed, "questions");
    std::unordered_set<std::string> seen;
    std::vector<std::string> questions;
    while (int(questions.size()) < count) {
        std::string sentence;
        expand("question", random, sentence);
        if (seen.insert(sentence).second) questions.push_back(std::move(sentence));
    }
    return questions;
}

std::string write_grammar_corpus(std::uint64_t seed, const std::string& folder) {
    std::vector<Entry> entries;
    for (const std::string& question : grammar_questions(seed, 12000)) entries.push_back({question, question, ""});
    return write_corpus(folder, "built-in grammar of questions", "made up",
                        text("12000 distinct questions, seed ", seed, "; held out by hash of the question"),
                        {{"questions", "sentences", make_splits(std::move(entries))}});
}

}  // namespace masquerade
