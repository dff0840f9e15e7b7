# SPDX-License-Identifier: Apache-2.0
"""8b/10b as the standard's tables have it, both columns written out: the benches' reference. A code is a string abcdeifghj, the left bit first on the wire; a
symbol is (k, byte); disparity is -1 or 1."""

# D.x: abcdei after minus, after plus.
SIX = """100111 011000
011101 100010
101101 010010
110001 110001
110101 001010
101001 101001
011001 011001
111000 000111
111001 000110
100101 100101
010101 010101
110100 110100
001101 001101
101100 101100
011100 011100
010111 101000
011011 100100
100011 100011
010011 010011
110010 110010
001011 001011
101010 101010
011010 011010
111010 000101
110011 001100
100110 100110
010110 010110
110110 001001
001110 001110
101110 010001
011110 100001
101011 010100"""
# D.x.y: fghj after minus, after plus; the eighth and ninth are the two of D.x.7.
FOUR = """1011 0100
1001 1001
0101 0101
1100 0011
1101 0010
1010 1010
0110 0110
1110 0001
0111 1000"""
OTHER_7 = {-1: (17, 18, 20), 1: (11, 13, 14)}  # x, by the disparity before fghj
# Control symbols: whole codes.
CONTROL = {
    0x1C: "0011110100 1100001011",
    0x3C: "0011111001 1100000110",
    0x5C: "0011110101 1100001010",
    0x7C: "0011110011 1100001100",
    0x9C: "0011110010 1100001101",
    0xBC: "0011111010 1100000101",
    0xDC: "0011110110 1100001001",
    0xFC: "0011111000 1100000111",
    0xF7: "1110101000 0001010111",
    0xFB: "1101101000 0010010111",
    0xFD: "1011101000 0100010111",
    0xFE: "0111101000 1000010111",
}
K28_1, K28_5, K28_7 = (1, 0x3C), (1, 0xBC), (1, 0xFC)
Symbol = tuple[int, int]


def after(code: str, disparity: int) -> int:
    """The running disparity after a code: of its ones, where they say anything."""
    ones = code.count("1")
    return disparity if 2 * ones == len(code) else 1 if 2 * ones > len(code) else -1


def data_code(byte: int, disparity: int) -> str:
    x, y = byte & 31, byte >> 5
    column = 0 if disparity < 0 else 1
    first = SIX.splitlines()[x].split()[column]
    between = after(first, disparity)
    row = 8 if y == 7 and x in OTHER_7[between] else y
    return first + FOUR.splitlines()[row].split()[0 if between < 0 else 1]


def _table(disparity: int) -> dict[Symbol, str]:
    data: dict[Symbol, str] = {(0, byte): data_code(byte, disparity) for byte in range(256)}
    return data | {(1, byte): codes.split()[0 if disparity < 0 else 1] for byte, codes in CONTROL.items()}


CODES = {disparity: _table(disparity) for disparity in (-1, 1)}
SYMBOLS = {disparity: {code: symbol for symbol, code in codes.items()} for disparity, codes in CODES.items()}


def encode(symbols: list[Symbol], disparity: int) -> tuple[list[str], int]:
    codes = []
    for symbol in symbols:
        codes.append(CODES[disparity][symbol])
        disparity = after(codes[-1], disparity)
    return codes, disparity


def as_word(codes: list[str]) -> int:
    """Codes side by side, the first bit on the wire lowest."""
    return int("".join(codes)[::-1], 2)


def as_codes(word: int, count: int) -> list[str]:
    bits = f"{word:0{10 * count}b}"[::-1]
    return [bits[at : at + 10] for at in range(0, 10 * count, 10)]
