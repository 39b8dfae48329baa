"""`[admission]`: the checks, the reasons for a rejection, and the limits."""

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
# The minimum characters of each class, without whitespace.
SIZE_CLASSES: tuple[tuple[SizeClass, int], ...] = (("huge", 80_000), ("large", 30_000), ("medium", 8_000))

UNDETERMINED = "und"
# The languages of the packaged language model.
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
    """Which languages are admitted. Without `allowed`, no document is rejected for its language."""

    allowed: tuple[Language, ...] = Field(
        (), description="Codes of admitted languages, such as en and de; empty = all."
    )
    min_confidence: Share = Field(
        0.6,
        description="Minimum score of a detected language. Used with `allowed`.",
    )
    uncertain: Literal["admit", "reject"] = Field(
        "admit",
        description="With `allowed`, admit or reject documents of uncertain language: mostly tables, "
        "formulas, code and very short texts.",
    )


class StructureOptions(Strict):
    """Limits of the structural filter. Shares are of characters without whitespace."""

    max_corrupt_share: Share = Field(
        0.3,
        description="Maximum share of replacement, control and private use characters (lost text).",
    )
    min_clean_share: Share = Field(
        0.25, description="A text with this share of clean running text is kept despite broken parts."
    )
    max_mojibake_share: Share = Field(
        0.3, description="Maximum share of characters that come from decoding with the wrong encoding."
    )
    max_glyph_share: Share = Field(
        0.5, description="Maximum share of glyph numbers such as /g23 and (cid:12), each as one character."
    )
    max_unsayable_share: Share = Field(
        0.52,
        description="If no language is recognized: maximum share of neighbouring Latin letters that are both "
        "vowels or both consonants (letters mapped to other letters).",
    )
    max_broken_word_share: Share = Field(
        0.5, description="Maximum share of single letters and overlong words (extra or lost spaces)."
    )
    min_entropy: float = Field(1.0, ge=0, le=16, description="Minimum bits per character.")
    max_entropy: float = Field(12.0, ge=0, le=32, description="Maximum bits per character.")
    max_symbol_share: Share = Field(
        0.7, description="Maximum share of punctuation and symbols; a run of equal ones counts once."
    )
    max_digit_share: Share = Field(0.95, description="Maximum share of digits, outside tables.")
    max_repeated_share: Share = Field(
        0.8, description="Maximum share of text in repeated lines, outside tables."
    )
    min_varied_words: int = Field(
        100,
        ge=1,
        description="Texts with this many different words or more are not checked for entropy and symbols.",
    )
    max_rest_chars: int = Field(
        100,
        ge=0,
        description="A document with more letters and digits outside what a rule rejects (repeated lines, "
        "notices, menus, links, filler) is kept.",
    )
    max_page_chars: int = Field(
        2000,
        ge=0,
        description="Longest error, login, cookie or metadata page, in letters and digits without menus; "
        "longer texts are kept.",
    )
    min_page_share: Share = Field(
        0.5, description="Minimum share of error or login phrases in an error or login page."
    )
    min_notice_share: Share = Field(
        0.8,
        description="Minimum share of notices (cookies and similar) or of metadata in a page to reject.",
    )
    min_template_share: Share = Field(
        0.5, description="Minimum share of filler and placeholders in an empty template."
    )
    min_links: int = Field(10, ge=1, description="Minimum links of a navigation page or a link list.")
    min_linked_share: Share = Field(
        0.9, description="Minimum share of text inside links and menus in such a page."
    )


class QualityOptions(Strict):
    """When an admitted document is TIER1 instead of TIER0. No document is rejected for quality."""

    min_score: Share = Field(0.5, description="Minimum quality score of TIER0.")
    isolated_chars: int = Field(
        300, ge=0, description="A document with fewer letters and digits is isolated, and so TIER1."
    )
    isolated_chars_per_page: int = Field(
        50, ge=0, description="The same per page, for slides of pictures and unreadable scans."
    )


class NearDuplicateOptions(Strict):
    """Nearly equal texts, found by MinHash over word shingles (characters in scripts without spaces)."""

    enabled: bool = Field(False, description="Reject near duplicates of earlier documents.")
    threshold: float = Field(
        0.9, ge=0.3, le=1, description="Minimum estimated share of common shingles of near duplicates."
    )
    shingle_words: int = Field(5, ge=1, le=20, description="Words in a shingle.")
    permutations: int = Field(
        128, ge=16, le=1024, description="Length of a signature; the error is about 1/√permutations."
    )


class AdmissionOptions(Strict):
    """Which documents are chunked. The defaults reject no document with useful text."""

    min_meaningful_chars: int = Field(
        100, ge=0, description="Minimum letters and digits of a document; see `short_text_words`."
    )
    short_text_words: int = Field(
        8,
        ge=0,
        description="A shorter text with this many different words (a sentence, a small table) is admitted; "
        "0 = never.",
    )
    max_chars: int = Field(
        100_000_000, ge=1, description="Maximum characters, without whitespace; longer texts are rejected."
    )
    warn_rejected_share: Share = Field(
        0.5, description="The web UI warns if a greater share of a batch is rejected."
    )
    language: LanguageOptions = LanguageOptions()
    structure: StructureOptions = StructureOptions()
    quality: QualityOptions = QualityOptions()
    near_duplicates: NearDuplicateOptions = NearDuplicateOptions()
