"""What admission may say about a document, and the limits it says it by."""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from ingest_assets.settings.fields import Share, Strict

Check = Literal["fast_filter", "doc_dedup", "structural_filter", "metadata", "admission"]
Reason = Literal[
    # fast_filter
    "too_short",
    "too_long",
    "language_not_allowed",
    "language_uncertain",
    # doc_dedup
    "duplicate",
    "near_duplicate",
    # structural_filter
    "empty",
    "corrupt_text",
    "garbled_encoding",
    "garbled_glyphs",
    "garbled_words",
    "entropy_too_low",
    "entropy_too_high",
    "too_many_symbols",
    "too_many_digits",
    "repeated_lines",
    "error_page",
    "login_page",
    "boilerplate_page",
    "template_page",
    "metadata_only",
    "navigation_page",
    "link_list",
]
TierReason = Literal["large", "isolated", "low_quality"]
SizeClass = Literal["small", "medium", "large", "huge"]

CHECKS: tuple[Check, ...] = get_args(Check)
# The fewest characters of each class; whitespace does not count.
SIZE_CLASSES: tuple[tuple[SizeClass, int], ...] = (("huge", 80_000), ("large", 30_000), ("medium", 8_000))

UNDETERMINED = "und"
# What the packaged language model tells apart.
_LANGUAGES = """
af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb co cs cv cy
da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he hi hif hr hsb ht hu hy
ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez li lmo lo lrc lt lv mai mg mhr
min mk ml mn mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no oc or os pa pam pfl pl pms pnb ps pt
qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz
vec vep vi vls vo wa war wuu xal xmf yi yo yue zh
"""
LANGUAGES = frozenset(_LANGUAGES.split())


def _known_language(code: str) -> str:
    if code not in LANGUAGES:
        raise ValueError(f"should be a language code such as en, de or zh, not {code!r}")
    return code


Language = Annotated[str, AfterValidator(_known_language)]


class LanguageOptions(Strict):
    """Which languages are admitted. Without an allowed list nobody is rejected for language."""

    allowed: tuple[Language, ...] = Field(
        (), description="Codes of the languages to admit, such as en and de; empty = all."
    )
    min_confidence: Share = Field(
        0.6,
        description="Score, 0 to 1, from which the detected language is believed. Used with an allowed list.",
    )
    uncertain: Literal["admit", "reject"] = Field(
        "admit",
        description="With an allowed list, what becomes of documents whose language stays uncertain: mostly "
        "tables, formulas, code and very short texts.",
    )


class StructureOptions(Strict):
    """Limits of the structural filter. All shares are of characters that are not whitespace."""

    max_corrupt_share: Share = Field(
        0.3,
        description="Replacement characters, control characters and private use at most: text that is lost.",
    )
    min_clean_share: Share = Field(
        0.25, description="A text with so much clean running text is kept, whatever is broken beside it."
    )
    max_mojibake_share: Share = Field(
        0.3, description="Characters at most that come from decoding with the wrong encoding."
    )
    max_glyph_share: Share = Field(
        0.5, description="Glyph numbers such as /g23 and (cid:12) at most, each counted as one character."
    )
    max_unsayable_share: Share = Field(
        0.52,
        description="Neighbouring Latin letters at most that are both vowels or both consonants, where no "
        "language is recognised: letters that stand for other letters.",
    )
    max_broken_word_share: Share = Field(
        0.5, description="Letters at most that stand alone or in words without end: spaces too many or lost."
    )
    min_entropy: float = Field(1.0, ge=0, le=16, description="Bits per character at least.")
    max_entropy: float = Field(12.0, ge=0, le=32, description="Bits per character at most.")
    max_symbol_share: Share = Field(
        0.7, description="Punctuation and symbols at most; a row of equal ones counts once."
    )
    max_digit_share: Share = Field(0.95, description="Digits at most, outside tables.")
    max_repeated_share: Share = Field(
        0.8, description="Text at most in lines that stood there before, outside tables."
    )
    min_varied_words: int = Field(
        100, ge=1, description="A text with so many different words is judged neither by entropy nor symbols."
    )
    max_rest_chars: int = Field(
        100,
        ge=0,
        description="Letters and digits that may remain beside what a rule objects to: repeated lines, "
        "notices, menus, links, filler. A document with more is kept.",
    )
    max_page_chars: int = Field(
        2000,
        ge=0,
        description="Longer texts are no error, login, cookie or metadata pages, whatever they speak of; "
        "letters and digits, menus left out.",
    )
    min_page_share: Share = Field(
        0.5, description="Share of a page's text that speaks like an error or login page before it is one."
    )
    min_notice_share: Share = Field(
        0.8,
        description="Share of cookie notices and the like, or of metadata, before a page is nothing else.",
    )
    min_template_share: Share = Field(
        0.5, description="Share of filler and placeholders before a text is an empty template."
    )
    min_links: int = Field(
        10, ge=1, description="Fewer links make neither a navigation page nor a link list."
    )
    min_linked_share: Share = Field(
        0.9, description="Share of the text inside links and menus before a page is nothing else."
    )


class QualityOptions(Strict):
    """What makes an admitted document TIER1 instead of TIER0. Nothing is rejected for quality."""

    min_score: Share = Field(0.5, description="A quality score below is low quality.")
    isolated_chars: int = Field(
        300, ge=0, description="A text with fewer letters and digits stands too alone to be judged by itself."
    )
    isolated_chars_per_page: int = Field(
        50, ge=0, description="The same per page: slides of pictures, scans that could hardly be read."
    )


class NearDuplicateOptions(Strict):
    """Texts that say almost the same. MinHash over word shingles; scripts without spaces by character."""

    enabled: bool = Field(False, description="Reject near duplicates of earlier documents.")
    threshold: float = Field(
        0.9, ge=0.3, le=1, description="Estimated share of common shingles from which two texts are the same."
    )
    shingle_words: int = Field(5, ge=1, le=20, description="Words in a shingle.")
    permutations: int = Field(
        128, ge=16, le=1024, description="Length of a signature; the estimate errs by about 1/√permutations."
    )


class AdmissionOptions(Strict):
    """What deserves to be chunked. The defaults reject no document with useful text."""

    min_meaningful_chars: int = Field(
        100, ge=0, description="Letters and digits a document has at least, unless it says a whole sentence."
    )
    short_text_words: int = Field(
        8,
        ge=0,
        description="Different words by which a shorter text is admitted all the same: a whole sentence or a "
        "small table; 0 = never.",
    )
    max_chars: int = Field(
        100_000_000, ge=1, description="Longer texts are rejected; whitespace does not count."
    )
    warn_rejected_share: Share = Field(
        0.5, description="A batch of which a greater share is rejected gets a warning in the web UI."
    )
    language: LanguageOptions = LanguageOptions()
    structure: StructureOptions = StructureOptions()
    quality: QualityOptions = QualityOptions()
    near_duplicates: NearDuplicateOptions = NearDuplicateOptions()
