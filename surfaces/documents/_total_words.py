"""Words for totals, in the languages of office programs."""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from typing import Literal, TypeAlias

from callboard.surfaces._numbers import is_numeric, parse_number, separator_of

LabelKind: TypeAlias = Literal["", "part", "whole"]
_SUMS = """
total, totals, subtotal, subtotals, sub total, s/total, grand total, sum, sums, overall, overall total, net total
total sum, gesamttotal, zwischentotal, samtals, totali, вкупно, укупно, Σ, ∑, Ʃ
summe, gesamt, gesamtsumme, zwischensumme, endsumme, insgesamt, gesamtbetrag, gesamtergebnis, ergebnis, rechnungsbetrag
total général, total general, sous total, somme, montant total, total ht, total ttc, total geral, suma total
total parcial, soma, totale, subtotale, totale complessivo, totale parziale, somma, totaal, subtotaal, eindtotaal, som
suma, razem, łącznie, ogółem, suma końcowa, suma częściowa, celkem, celkový součet, součet, mezisoučet, celkom, spolu
súčet, medzisúčet, összesen, végösszeg, összeg, részösszeg, ukupno, zbroj, skupaj, vsota, vmesna vsota, sumă
итог, итого, всего, общий итог, сумма, промежуточный итог, разом, усього, всього, підсумок, сума, общо, всичко
summa, totalt, totalsumma, delsumma, totalsum, delsum, i alt, hovedtotal, subtotalt, sum totalt, yhteensä, välisumma
kaikki yhteensä, kokku, vahesumma, kopā, iš viso, viso, toplam, ara toplam, genel toplam, σύνολο, μερικό σύνολο
γενικό σύνολο, άθροισμα, סה"כ, סהכ, סך הכל, المجموع, الإجمالي, إجمالي, مجموع, جمع, جمع کل, कुल, योग, कुल योग
tổng, tổng cộng, jumlah, jumlah keseluruhan, kabuuan
"""
_UNSPACED = (
    *("合計", "小計", "総計", "集計", "合计", "小计", "总计", "总额", "汇总", "總計"),
    *("총계", "합계", "소계", "총합계", "รวม", "ยอดรวม"),
)
_MEANS = """
average, averages, avg, ø, mean, median, sub, subt, subtot, sub tot, tot
durchschnitt, mittelwert, moyenne, media, promedio, média, gemiddelde, średnia, průměr, átlag
среднее, medel, medelvärde, gennemsnitt, gennemsnit, keskiarvo, ortalama, μέσος όρος, 平均, 平均值, 평균
"""
_EDGES = " \t:.=*()[]<>-\u2013\u2014\u2192/#"
_HYPHENS = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")
_SPACED = re.compile(r"\w(?: \w){3,}")
_TAXES = """
tax, taxes, vat, gst, hst, mwst, ust, umsatzsteuer, mehrwertsteuer, tva, iva, btw, moms, mva, dph, áfa, pdv, ddv, kdv
ндс, пдв, ддс, alv, pvm, pvn, φπα, ppn, 税, 消費税, 税额, 부가세, מע"מ
"""
_BESIDE = """
discount, rebate, shipping, freight, postage, delivery, handling, rounding, deposit, paid, payment, payments, balance
due, net, gross, rabatt, skonto, nachlass, versand, versandkosten, fracht, porto, anzahlung, restbetrag, zahlbetrag
netto, brutto, nettobetrag, bruttobetrag, nettosumme, bruttosumme, remise, livraison, port, acompte, solde, payer
descuento, envío, portes, base, imponible, imponibile, sconto, spedizione, acconto, saldo, korting, verzendkosten
zniżka, sleva, скидка, доставка, 割引, 送料, 折扣, 运费
"""
_LONGEST_NAME = 3
"""In words."""


def _normal(text: str) -> str:
    plain = _HYPHENS.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    words = " ".join(plain.split()).strip(_EDGES)
    return words.replace(" ", "") if _SPACED.fullmatch(words) else words


_PARTS = frozenset(map(_normal, re.split("[,\n]", _SUMS))) - {""}
_TAX_WORDS, _BESIDE_WORDS = (frozenset(map(_normal, re.split("[,\n]", text))) - {""} for text in (_TAXES, _BESIDE))
_NAMES = frozenset(map(_normal, re.split("[,\n]", _MEANS))) - {""} | {*_PARTS, *map(_normal, _UNSPACED)}


@functools.lru_cache(maxsize=4096)
def total_label(text: str) -> LabelKind:
    """Compare a label with the words for totals and means.

    Returns:
        ``whole`` for a label such as ``Total:``, ``part`` for one such as ``Total East``, else nothing.
    """
    label = _normal(text)
    if label in _NAMES:
        return "whole"
    words = label.split()
    ends = (" ".join(part).strip(_EDGES) for n in range(1, _LONGEST_NAME + 1) for part in (words[:n], words[-n:]))
    names_part = any(end in _PARTS for end in ends)
    return "part" if names_part or label.startswith(_UNSPACED) or label.endswith(_UNSPACED) else ""


def totals_at_end(rows: list[list[str]]) -> list[str]:
    """Return the labels of the totals that end a table of texts.

    They begin at the first total. A row whose label only contains such a word, or that has numbers only and nothing in
    the first column, counts if one of its numbers is the sum of those above. Between and below totals there may be rows
    of taxes, discounts and payments, and empty ones.
    """
    first = len(rows)
    for number in range(len(rows) - 1, 0, -1):
        kind = _kind_of(rows, number)
        if kind == "total" or (kind == "tax" and first == number + 1):
            first = number
        elif not kind:
            break
    return [_label(row) for row in rows[first:]]


def _label(row: list[str]) -> str:
    return next(filter(str.strip, row), "")


def _kind_of(rows: list[list[str]], number: int) -> Literal["", "total", "tax", "beside"]:
    """Return the kind of a row at the end of a table."""
    label = _label(rows[number])
    words = {word.strip(_EDGES) for word in _normal(label).split()}
    kind = total_label(label)
    is_near = bool(kind or words & _BESIDE_WORDS) or (is_numeric(label) and not rows[number][0].strip())
    if kind == "whole" or (is_near and _adds_up(rows, number)):
        return "total"
    if words & _TAX_WORDS:
        return "tax"
    return "beside" if not label or words & _BESIDE_WORDS else ""


def _adds_up(rows: list[list[str]], number: int) -> bool:
    """Return whether a number is the sum of those above.

    These are all, or those below the last total. Without a label, there must be two, and the sum is not 0.
    """
    labelled = bool(total_label(_label(rows[number])))
    group = next((above + 1 for above in range(number - 1, 0, -1) if total_label(_label(rows[above]))), 1)
    for column, text in enumerate(rows[number]):
        mark = separator_of([*(row[column] for row in rows[1:number] if column < len(row)), text])
        total = parse_number(text, mark, loose=True)
        if total is None or not (labelled or total.value):
            continue
        for start in {1, group}:
            summands = (parse_number(row[column], mark, loose=True) for row in rows[start:number] if column < len(row))
            values = [float(summand.value) for summand in summands if summand]
            enough = len(values) > (0 if labelled else 1)
            if enough and math.isclose(math.fsum(values), float(total.value), abs_tol=0.005):
                return True
    return False
