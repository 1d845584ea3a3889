"""Names of controls that indicate a hazard, in many languages."""

import pytest

from callboard.messages import Hazard
from callboard.surfaces._hazard_words import of_answer, of_beginning, of_name

OVERWRITES = (
    "_Replace|REPLACE ALL|Ersetzen|Ü_berschreiben|Remplacer|Écraser|Reemplazar|Sobrescribir|Sostituisci|"
    "Sovrascrivi|Substituir|Vervangen|Zastąp|Nadpisz|Nahradit|Ersätt|Erstat|Korvaa|Заменить|Перезаписать|Değiştir|"
    "替换(_R)|取代|覆盖|置き換え(R)|上書き保存|바꾸기|Format disk|Re\u200bplace|&Overwrite|استبدال"
)
DELETES = (
    "Delete|Remove 3 items|Erase|Discard|Close _without Saving|Don\u2019t Save|Löschen|Entfernen|Verwerfen|"
    "Nicht speichern|Supprimer|Ne pas enregistrer|Eliminar|Borrar|No guardar|Elimina|Non salvare|Excluir|Apagar|"
    "Não salvar|Verwijderen|Niet opslaan|Usuń|Nie zapisuj|Smazat|Ta bort|Slet|Poista|Удалить|Не сохранять|Sil|"
    "删除|丢弃|不保存|削除|保存しない|삭제|Move to Trash|Empty Trash"
)
SENDS = (
    "Send|Submit form|Post|Senden|Absenden|Envoyer|Enviar|Invia|Verzenden|Wyślij|Odeslat|Skicka|Отправить|发送|"
    "提交|送信|보내기|Publish"
)
SPENDS = (
    "Pay|Buy now|Order now|Place order|Jetzt kaufen|Zahlungspflichtig bestellen|Payer|Acheter|Pagar|Comprar|"
    "Acquista|Paga|Betalen|Kopen|Zapłać|Kup teraz|Köp|Оплатить|支付|购买|購入する|注文を確定|결제하기"
)
TABLE = {Hazard.OVERWRITES: OVERWRITES, Hazard.DELETES: DELETES, Hazard.SENDS: SENDS, Hazard.SPENDS: SPENDS}


@pytest.mark.parametrize(
    ("hazard", "name"), [(hazard, name) for hazard, names in TABLE.items() for name in names.split("|")]
)
def test_a_name_indicates_its_hazard(hazard, name):
    assert hazard in of_name(name)
    assert hazard in of_beginning(name) or " " in name


@pytest.mark.parametrize(
    ("hazard", "name"),
    [
        *((hazard, name.upper()) for hazard, names in TABLE.items() for name in names.split("|")),
        (Hazard.DELETES, "S\u0130L"),
        (Hazard.DELETES, "\u0394\u0399\u0391\u0393\u03a1\u0391\u03a6\u0397"),
        (Hazard.OVERWRITES, "DE\u011e\u0130\u015eT\u0130R"),
        (Hazard.OVERWRITES, "ECRASER"),
        (Hazard.SENDS, "G\u00d6NDER"),
        (Hazard.SPENDS, "SATIN AL"),
    ],
)
def test_a_name_in_capitals_indicates_its_hazard(hazard, name):
    assert hazard in of_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "Cancel",
        "Abbrechen",
        "Annuler",
        "Cancelar",
        "Annulla",
        "Annuleren",
        "Anuluj",
        "Save",
        "OK",
        "Yes",
        "Open",
        "Sort order",
        "Keep both",
        "Compress",
        "Command",
        "Payment options",
        "Exclusive",
        "Default",
        "Cancelled",
        "Information",
        "Close",
        "Print",
        "Personal",
        "",
    ],
)
def test_other_names_indicate_no_hazard(name):
    assert of_name(name) == set()


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("_Yes", "The file exists. Do you want to overwrite it?"),
        ("OK", "Diese Datei löschen und ersetzen?"),
        ("Oui", "Voulez-vous remplacer ce fichier ?"),
        ("Sí", "¿Desea reemplazarlo?"),
        ("是(Y)", "文件已存在,是否覆盖?"),
        ("はい(Y)", "ファイルを置き換えますか?"),
        ("Да", "Файл существует. Заменить?"),
    ],
)
def test_an_answer_has_the_hazards_of_its_question(name, question):
    assert Hazard.OVERWRITES in of_answer(name, [question])
    assert of_answer("No", [question]) == of_answer(name, ["Tea?"]) == set()
