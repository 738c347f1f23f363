"""Short phrases for the review classifier: plain and negated words of praise and blame.

A review carries one label for all its sentences, which teaches a small model little about
negation. These phrases make up a few per cent of what the classifier is trained on.
"""

# fmt: off
POSITIVE_ADJECTIVES = [
    "good", "great", "excellent", "wonderful", "fantastic", "brilliant", "superb", "amazing",
    "perfect", "beautiful", "enjoyable", "entertaining", "funny", "clever", "charming", "moving",
    "touching", "interesting", "original", "memorable", "impressive", "exciting", "gripping",
    "fresh", "witty", "likable", "believable", "convincing", "fun", "delightful", "solid", "smart",
    "powerful", "satisfying", "worthwhile", "special", "fascinating", "hilarious", "fine",
    "pleasant",
]
NEGATIVE_ADJECTIVES = [
    "bad", "terrible", "awful", "horrible", "boring", "dull", "poor", "stupid", "lame", "weak",
    "predictable", "annoying", "disappointing", "ridiculous", "pathetic", "slow", "bland",
    "forgettable", "unfunny", "painful", "laughable", "cheesy", "silly", "tedious", "ugly",
    "mediocre", "pointless", "dreadful", "confusing", "shallow", "dumb", "unwatchable", "cheap",
    "pretentious", "atrocious", "worthless", "clumsy", "lifeless", "tiresome", "wooden",
]
# fmt: on
PLAIN = [
    "{}",
    "it is {}",
    "it was {}",
    "it was really {}",
    "the film is {}",
    "this movie was so {}",
    "simply {}",
    "i found it {}",
    "the acting is {}",
    "{} from start to finish",
]
NEGATED = [
    "not {}",
    "not {} at all",
    "not at all {}",
    "it is not {}",
    "it's not {}",
    "it was not {} at all",
    "it wasn't {}",
    "the film isn't {}",
    "this movie is never {}",
    "hardly {}",
    "far from {}",
    "anything but {}",
    "nothing {} about it",
    "i did not find it {}",
]

# Past and base form.
POSITIVE_VERBS = [("loved", "love"), ("liked", "like"), ("enjoyed", "enjoy"), ("admired", "admire")]
NEGATIVE_VERBS = [("hated", "hate"), ("disliked", "dislike"), ("regretted", "regret")]
PLAIN_VERB = ["i {} it", "i {} this film", "i {} every minute of it", "we all {} the movie"]
NEGATED_VERB = [
    "i did not {} it",
    "i didn't {} this film",
    "you will not {} it",
    "i could not {} it",
]


def fill(templates: list[str], words: list[str]) -> list[str]:
    """Put every word into every template."""
    return [template.format(word) + "." for template in templates for word in words]


def labelled_phrases() -> tuple[list[str], list[int]]:
    """Return the phrases and their labels: 0 is negative, 1 is positive."""
    positive = fill(PLAIN, POSITIVE_ADJECTIVES) + fill(NEGATED, NEGATIVE_ADJECTIVES)
    positive += fill(PLAIN_VERB, [past for past, _ in POSITIVE_VERBS])
    positive += fill(NEGATED_VERB, [base for _, base in NEGATIVE_VERBS])
    negative = fill(PLAIN, NEGATIVE_ADJECTIVES) + fill(NEGATED, POSITIVE_ADJECTIVES)
    negative += fill(PLAIN_VERB, [past for past, _ in NEGATIVE_VERBS])
    negative += fill(NEGATED_VERB, [base for _, base in POSITIVE_VERBS])
    return positive + negative, [1] * len(positive) + [0] * len(negative)
