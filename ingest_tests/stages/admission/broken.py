"""Garbled texts as they occur in real documents, and valid texts that look similar."""

from ingest_assets.stages.admission.document_text import DocumentText
from ingest_tests.stages.admission.pages import page, plain

ENGLISH = (
    "The suspension bridge was opened in 1932 and has been repaired twice since. Inspectors found that the "
    "main cables are in good order, while the deck shows cracks near the northern abutment. The city council "
    "will decide in spring whether to replace the bearings or to close the bridge to lorries for two years. "
)
RUSSIAN = (
    "Мост через реку был построен в 1932 году и с тех пор дважды ремонтировался. Осмотр показал, что тросы "
    "находятся в хорошем состоянии, а на опоре появились трещины. "
)
CHINESE = (
    "这座桥建于一九三二年，后来修过两次。检查显示主缆状况良好，但北侧桥台附近的桥面出现裂缝。"
    "市议会将在春天决定。"
)
JAPANESE = (
    "この橋は1932年に開通し、その後二度修理されました。主ケーブルは良好ですが、"
    "北側の橋台付近に亀裂があります。"
)
ARABIC = (
    "افتتح الجسر المعلق عام 1932 وتم إصلاحه مرتين منذ ذلك الحين. "
    "وجد المفتشون أن الكابلات الرئيسية في حالة جيدة. "
)
THAI = "สะพานแขวนเปิดใช้ในปี 1932 และได้รับการซ่อมแซมสองครั้งตั้งแต่นั้นมา ผู้ตรวจสอบพบว่าสายเคเบิลหลักอยู่ในสภาพดี "
HINDI = (
    "झूला पुल 1932 में खोला गया था और तब से इसकी दो बार मरम्मत की जा चुकी है। "
    "निरीक्षकों ने पाया कि मुख्य केबल अच्छी स्थिति में हैं। "
)
VIETNAMESE = (
    "Cây cầu treo được khánh thành năm 1932 và đã được sửa chữa hai lần. Các cáp chính vẫn ở tình trạng tốt. "
)
CZECH = (
    "Visutý most byl otevřen v roce 1932. Prohlídka ukázala, že nosná lana jsou v dobrém stavu. "
    "Strč prst skrz krk. "
)


def shifted(text: str, by: int) -> str:
    """Garble a text like a font whose character map is shifted by this many."""
    return "".join(chr(ord(character) + by) if character > " " else character for character in text)


def as_glyphs(text: str) -> str:
    """Garble a text like a font without a character map."""
    return "".join(f"/g{ord(character) % 90}" if character != " " else " " for character in text)


_BASE64 = (
    "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJRTESMBAGA1UEChMJQmFsdGltb3JlMRMwEQYDVQQL"
    "EwpDeWJlclRydXN0MSIwIAYDVQQDExlCYWx0aW1vcmUgQ3liZXJUcnVzdCBSb290MB4XDTAwMDUxMjE4NDYwMFoXDTI1MDUxMjIzNTkw"
)

# Latin Extended, Cyrillic, Devanagari, Hangul, Han …: what random sixteen-bit numbers look like.
_ANYTHING = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(12_000))

BROKEN: dict[str, list[DocumentText]] = {
    "empty": [page(""), plain(" \n\t "), page("* * *\n---\n• •")],
    "corrupt_text": [
        plain("M�r�t�n�s �s s���r� h�v�r �j� b�l��t� sz��� " * 6),
        plain("\x02\x03Q\x1b5\x07z\x10 \x11\x0e\x05k\x12 \x7f3\x01" * 20),
        plain("\ue012\ue034\ue045 \ue011\ue022\ue033\ue044 a\ue051\ue052" * 20),
    ],
    "garbled_encoding": [
        plain(RUSSIAN.encode().decode("cp1252", "replace") * 2),
        plain(RUSSIAN.encode().decode("cp1251", "replace") * 2),
        plain(RUSSIAN.encode("cp1251").decode("latin-1") * 2),
        plain(CHINESE.encode().decode("cp1252", "replace") * 2),
        plain("锟斤拷锟斤拷锟斤拷 锟斤拷锟斤拷 2019 锟斤拷锟斤拷锟斤拷锟斤拷" * 6),
    ],
    "garbled_glyphs": [
        plain(as_glyphs(ENGLISH)),
        plain("(cid:37)(cid:82)(cid:68)(cid:85)(cid:71) (cid:80)(cid:72)(cid:72)(cid:87) 2019 " * 12),
        plain("GLYPH<c=21,font=/ABCDEF+Minion> GLYPH<c=7,font=/ABCDEF+Minion> 3 " * 30),
    ],
    "garbled_words": [
        plain(shifted(ENGLISH.lower(), 1) * 2),
        plain(shifted(ENGLISH, -29) * 2),
        plain("xkcd bzrt plmk qwrt fghj kltr vbnm zxcv dfgh sdfg hjkl trwq mnbv pqrs ttbl " * 6),
        plain(" ".join(ENGLISH.replace(" ", "  "))),
        plain("-----BEGIN CERTIFICATE-----\n" + f"{_BASE64}\n" * 6 + "-----END CERTIFICATE-----"),
        plain(ENGLISH.replace(" ", "").lower() * 2),
    ],
    "entropy_too_low": [plain("aaaaaaaaaaaaaaaaaaaa " * 40), plain("0" * 800 + "1" * 100)],
    "entropy_too_high": [plain(_ANYTHING)],
    "too_many_symbols": [
        plain("+--+--+ /\\/\\/\\ <><><> |##| |#| %$%$ (_)(_) ^^ ~*~*~ {}[] a b " * 15),
        plain("▓▒░ ◆◇◆ ★☆★ ♪♫♪ →→ ←← ■□■ ●○● ok " * 20),
    ],
    "too_many_digits": [
        plain("48213 9921 00341 77 12903 5561 90012 3347 81 20394 " * 20),
        plain("\n".join(str(number * 7919 % 100_000) for number in range(200)) + "\nPage 3 of 7"),
    ],
    "repeated_lines": [
        page("Buy cheap watches online now, best price guaranteed!\n" * 40),
        plain("Loading the next results, please wait a moment. " * 60),
        page("お買い得な腕時計を今すぐオンラインで購入\n" * 50),
    ],
}

NEARLY_BROKEN: dict[str, list[DocumentText]] = {
    "empty": [page("A"), page("- - 1 - -")],
    "corrupt_text": [
        plain(ENGLISH.replace("e", "�", 6)),
        # In one half of a bilingual leaflet, the font has no character map.
        page(f"{ENGLISH}\n" + "\ue012\ue034\ue045 \ue011\ue022\ue033" * 30),
        page("\uf0b7 Check the bearings\n\uf0b7 Check the cables\n\uf0b7 Report cracks to the office\n" * 2),
    ],
    "garbled_encoding": [
        plain("Die BrÃ¼cke wurde geprÃ¼ft. Die Lager mÃ¼ssen in diesem Jahr noch ersetzt werden. " * 4),
        plain(
            "« L’été », dit-il, « a été très chaud… » À l’école, les élèves ont été prévenus : « Buvez ! » "
            * 3
        ),
        plain(RUSSIAN.upper()),
        plain(CHINESE),
        plain(VIETNAMESE * 3),
    ],
    "garbled_glyphs": [
        plain("(cid:127) Check the bearings of the bridge\n(cid:127) Check the main cables for rust\n" * 5),
        page(f"{ENGLISH}\nText that comes out as /g23/g7/g19 or (cid:12) has a font without a map."),
    ],
    "garbled_words": [
        plain(CZECH * 3),
        plain(ENGLISH * 2),
        plain(
            "Abbreviations: HTTP is the Hypertext Transfer Protocol, SMTP the Simple Mail Transfer Protocol, "
            "TCP, UDP, TLS, SSH, DHCP, DNS, NTP and LDAP are explained in the glossary, XML and HTML are not."
        ),
        page("Let a, b and c be the sides of a triangle with the angles A, B and C. Then a + b > c. " * 4),
        page(f"To get the certificate, run the command below and compare it with what we sent.\n{_BASE64}"),
        plain(THAI * 4),
        plain(HINDI * 4),
        plain(ARABIC * 4),
        plain(
            "Das Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz wurde 2013 aufgehoben, und "
            "auch die Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft ruht."
        ),
    ],
    "entropy_too_low": [
        page("| Site | January | February |\n" + "| Bridge | 0 | 0 |\n" * 30),
        page("| day | rain |\n| 1 | 0 |\n| 2 | 0 |\n| 3 | 10 |\n| 4 | 0 |\n| 5 | 100 |\n" * 6),
    ],
    "entropy_too_high": [plain(CHINESE), plain(JAPANESE + ARABIC + THAI + HINDI + RUSSIAN + ENGLISH)],
    "too_many_symbols": [
        page("\n".join(f"{word} {'.' * 60} {at}" for at, word in enumerate(ENGLISH.split()[:30]))),
        page("# Copy\n    if (from[i] != to[j]) { gap += (one && !two) ? ++i : --j; }\n    for (;;) *p++;"),
        plain("$\\frac{a}{b} + \\sum_{i=0}^{n} x_i^2 = \\int_0^1 f(x)\\,dx$ is what we have to show. " * 5),
    ],
    "too_many_digits": [
        page("| 1932 | 20.5 | 3 |\n| 1933 | 21.7 | 4 |\n| 1934 | 19.9 | 2 |\n" * 10),
        plain("§ 14 Abs. 3 Satz 2 Nr. 4 in Verbindung mit § 22 Abs. 1 BauGB, BGBl. I 2017 S. 3634, 2020. "),
        plain(
            "Readings of the gauge at the northern pier in millimetres, one every hour from noon on, "
            "taken by the inspector on duty and copied from the log by hand: "
            + "1042 1043 1041 1047 1049 1052 "
            * 60
        ),
    ],
    "repeated_lines": [
        page(
            "The cable sings above the tide,\nHold fast, hold fast, old iron.\n"
            "The ferrymen have long since died,\nHold fast, hold fast, old iron.\n"
            "The rivets rust, the lamps burn low,\nHold fast, hold fast, old iron.\n"
            "And still the carts and people go,\nHold fast, hold fast, old iron.\n"
        ),
        page("| Monday | closed |\n" * 50 + "The museum is open on Sundays from ten to four."),
        page(
            "Confidential\nPage\nWhat we found at the bridge in spring.\n"
            "Confidential\nPage\nWhat it will cost us.\n"
        ),
    ],
}
