"""Hazards that the name of a control indicates, in the common languages.

A surface with controls does not describe the effect of a press. It is inferred from the control's name and, for an
answer such as "Yes", from the question.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from callboard.messages import Hazard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

WORDS: Mapping[Hazard, str] = {
    Hazard.OVERWRITES: """
        en: replac* overwrit* overwrote
        de: ersetz* überschreib* überschrieben
        fr: remplac* écras*
        es: reemplaz* sobrescrib* sobreescrib* sustitu*
        it: sostitu* sovrascri*
        pt: substitu* sobrescrev* sobrepor
        nl: vervang* overschrijv* overschreven
        pl: zastąp* zastęp* nadpis*
        cs: nahradi* nahraz* přepsat přepíše přepsán
        sv: ersätt* skriv_över skriva_över
        da: erstat* overskriv*
        fi: korvaa* ylikirjoit* päällekirjoit*
        ru: замен* перезапи*
        uk: замін* перезапи*
        tr: değiştir* üzerine_yaz*
        hu: csere* lecserél* felülír*
        ro: înlocui* suprascri*
        el: αντικατάστασ* αντικαταστ*
        vi: thay_thế ghi_đè
        id: timpa* ganti
        zh: 替换 替換 覆盖 覆蓋 覆写 覆寫 取代
        ja: 置き換え 置換 上書き 差し替え
        ko: 바꾸기 바꾸시 덮어 교체
        ar: استبدال
        he: החלף החלפה
    """,
    Hazard.DELETES: """
        en: delet* remov* eras* discard* wipe* purg* uninstall* destroy* move_to_trash empty_trash
            don't_save do_not_save without_saving be_lost be_undone
        de: lösch* gelöscht* entfern* verwerf* verworfen vernicht* deinstall* zurücksetzen papierkorb
            nicht_speichern ohne_speichern ohne_zu_speichern verloren
        fr: supprim* suppression effac* retirer enlever vider désinstall* réinitialis* détruire corbeille
            ne_pas_enregistrer sans_enregistrer perdu*
        es: elimin* borrar borra borre borrado quitar descart* vaciar desinstal* suprim*
            papelera no_guardar sin_guardar perder*
        it: elimin* cancella cancellare cancellato rimuov* scart* svuota* disinstall* cestino non_salvare
            senza_salvare perse perso
        pt: excluir exclua exclusão apaga* elimin* descart* esvaziar desinstal* lixo lixeira
            não_guardar não_salvar não_gravar sem_salvar sem_guardar sem_gravar
        nl: verwijder* wis wissen gewist weggooien verwerp* leegmaken prullenbak niet_opslaan zonder_op_te_slaan
        pl: usuń usuw* usun* skasuj kasuj odrzuć odinstaluj opróżnij wymaż porzuć nie_zapisuj bez_zapisywania
        cs: odstran* smaz* smaž* vymaz* zahod* vyprázdn* odinstal* neukládat bez_uložení
        sv: ta_bort tas_bort radera* kasta* släng* avinstaller* töm spara_inte utan_att_spara
        da: slet* fjern* kasser* kassér* tøm afinstaller* gem_ikke ikke_gem lagre_ikke ikke_lagre
            uden_at_gemme uten_å_lagre forkast*
        fi: poista* hylkää tyhjennä hävitä älä_tallenna tallentamatta
        ru: удал* стереть очистить уничтож* отбросить не_сохранять без_сохранения
        uk: вилуч* видал* стерти очистити відкинути не_зберігати без_збереження
        tr: sil silme* silin* silinsin kaldır* kaydetme kaydetmeden
        hu: töröl* törl* eltávolít* elvet* ne_mentse mentés_nélkül
        ro: șterge* ştergeţi elimin* nu_salva fără_a_salva
        el: διαγραφ* διαγράψ* αφαίρε* απόρριψ* χωρίς_αποθήκευση
        vi: xóa xoá gỡ_bỏ không_lưu
        id: hapus buang jangan_simpan
        zh: 删除 刪除 移除 清除 清空 丢弃 捨棄 放棄 卸载 抹掉 抹除 擦除 不保存 不儲存 回收站
        ja: 削除 消去 破棄 除去 取り除 ゴミ箱 アンインストール 保存しない 保存せず
        ko: 삭제 제거 지우기 버리기 비우기 저장하지_않 저장_안
        ar: حذف إزالة مسح
        he: מחק מחיקה הסר
    """,
    Hazard.SENDS: """
        en: send* submit* publish* upload* transmit*
        de: senden sende gesendet absende* absenden versend* abschick* verschick* schicken übermittel*
            veröffentlich* hochladen einreichen weiterleiten
        fr: envoy* envoi soumet* publier publiez transmettre transférer téléverser expédi*
        es: enviar envía envíe enviado envío publicar reenviar
        it: invia inviare inviato spedi* pubblica pubblicare inoltra*
        pt: enviar envie enviado submeter publicar encaminhar
        nl: verzend* verzonden verstuur* versturen stuur sturen indienen publiceer* publiceren doorsturen
        pl: wyślij wysyła* wysłać wysłan* publikuj opublikuj prześlij
        cs: odesl* odeslat odešl* poslat pošli* publikovat zveřejnit
        sv: skicka* publicer*
        da: publiser*
        fi: lähet* julkais*
        ru: отправ* отосл* опублик* разослать
        uk: надісл* надсил* відправ* опублік*
        tr: gönder* yayınla*
        hu: küld* elküld* közzét*
        ro: trimit* publică
        el: αποστολ* δημοσίευσ*
        vi: gửi đăng_bài
        id: kirim*
        zh: 发送 發送 傳送 寄出 发布 發佈 提交 上传 上傳
        ja: 送信 投稿 公開 提出 アップロード
        ko: 보내기 보내시 전송 게시 제출 업로드
        ar: إرسال
        he: שלח
    """,
    Hazard.SPENDS: """
        en: buy* pay pays paid purchas* checkout check_out subscrib* donat* place_order place_your_order place_the_order
            confirm_order complete_order submit_order confirm_payment
        de: kauf* gekauft bezahl* zahlen zahlungspflichtig* bestell* überweis* spenden buchen abonnier*
        fr: achet* acheter payer payez paiement commander passer_la_commande régler souscri* s'abonner virement
        es: comprar compra pagar pague pago hacer_pedido realizar_pedido confirmar_pedido suscrib* donar
        it: acquist* compra comprare paga pagare ordina ordinare abbonati dona
        pt: comprar compra pagar pague pagamento encomendar finalizar_pedido fazer_pedido assinar doar
        nl: koop kopen betaal* betalen bestel* afrekenen doneer* doneren abonneer* abonneren
        pl: kup kupuj kupić zapłać płać opłać zamów zamawiam subskrybuj wpłać przelej
        cs: koupit zaplatit zaplaťte objedn*
        sv: köp* betala* beställ*
        da: køb* kjøp* betal* bestil*
        fi: osta* maksa* tilaa*
        ru: купить купи купите оплат* заказать оформить_заказ
        uk: купити оплат* сплат* замовити
        tr: satın_al öde öden* ödeme* sipariş*
        hu: vásár* fizet* megrendel*
        ro: cumpăr* plăt* plasează_comanda
        el: αγορά* πληρωμή* παραγγελία*
        vi: mua_ngay thanh_toán đặt_hàng
        id: beli bayar pesan_sekarang
        zh: 购买 購買 付款 支付 下单 下單 订购 訂購 结账 結帳 转账 轉帳 捐款
        ja: 購入 支払 注文 決済 寄付 振込 送金
        ko: 구매 구입 결제 주문 송금
        ar: شراء دفع
        he: קנה שלם
    """,
    Hazard.INSTALLS: """
        en: install*
        es: instala* instale
        pl: instaluj zainstaluj
        cs: nainstalovat
        fi: asenna*
        ru: установить установка
        uk: встановити
        tr: yükle kur
        hu: telepít*
        zh: 安装 安裝
        ja: インストール
        ko: 설치
    """,
}
"""The words of each hazard by language; ``*`` stands for any ending, ``_`` for a space."""
_FIRST = {
    Hazard.OVERWRITES: "format reformat formatieren formater formatear formatta formatar formatuj sformatuj",
    Hazard.DELETES: "clear reset empty trash drop leeren",
    Hazard.SENDS: "post share reply forward teilen partager compartir condividi",
    Hazard.SPENDS: "order transfer bid",
}
"""Words that count only at the beginning of a name: "Order now", but not "Sort order"."""
_YES = """
    en: yes ok okay continue proceed confirm apply accept agree sure go_ahead do_it
    de: ja weiter fortfahren fortsetzen bestätigen übernehmen akzeptieren
    fr: oui continuer poursuivre confirmer valider accepter appliquer
    es: sí si continuar aceptar confirmar seguir aplicar
    it: sì continua conferma procedi accetta applica prosegui
    pt: sim prosseguir aceitar aplicar
    nl: doorgaan verder bevestig* akkoord toepassen
    pl: tak kontynuuj potwierdź dalej zastosuj
    cs: ano pokračovat potvrdit budiž
    sv: fortsätt bekräfta verkställ
    da: fortsæt bekræft fortsett bekreft anvend
    fi: kyllä jatka vahvista hyväksy
    ru: да продолжить подтвердить ок применить
    uk: так продовжити підтвердити гаразд застосувати
    tr: evet devam onayla tamam uygula
    hu: igen folytatás megerősít* rendben
    ro: da continuă confirmă
    el: ναι συνέχεια επιβεβαίωση εντάξει
    vi: có tiếp_tục đồng_ý
    id: ya lanjutkan setuju
    zh: 是 确定 確定 确认 確認 继续 繼續 好
    ja: はい 続行 実行 続ける 了解
    ko: 예 네 확인 계속
    ar: نعم موافق متابعة
    he: כן אישור המשך
"""
"""The names of buttons that agree to a question."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that put no spaces between words, or attach endings to them."""
_ACCENTS = re.compile("[\u0300-\u036f]")
"""The accents of Latin, Greek and Cyrillic letters; signs of other scripts belong to their words."""


def _pattern(words: str) -> re.Pattern[str]:
    """Build a pattern of words, in the form of `WORDS`."""
    parts = []
    for word in re.sub(r"\b[a-z]{2}: ", "", words).split():
        text = re.escape(_plain(word.removesuffix("*").replace("_", " ")))
        ends = "" if word.endswith("*") else r"(?!\w)"
        parts.append(text if _UNSPACED.search(word) else rf"(?<!\w){text}{ends}")
    return re.compile("|".join(parts))


def _plain(name: str) -> str:
    """Normalize a name: no mnemonics, marks and invisible characters.

    Capitals may lack the accents of small letters, as in Greek and French, or have others, as in Turkish.
    """
    visible = "".join(sign for sign in name if unicodedata.category(sign) not in {"Cf", "Cc"} or sign.isspace())
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", visible).casefold())
    text = unicodedata.normalize("NFKC", bare).replace("\u2019", "'").replace("\u0131", "i")
    return " ".join(re.sub("[_&]", "", text).split())


_ANYWHERE = {hazard: _pattern(words) for hazard, words in WORDS.items()}
_AT_FIRST = {hazard: _pattern(words) for hazard, words in _FIRST.items()}
_AGREES = _pattern(_YES)


def of_name(name: str) -> set[Hazard]:
    """Return the hazards that a control's name indicates.

    >>> sorted(of_name("_Replace"))
    [<Hazard.OVERWRITES: 'overwrites'>]
    >>> of_name("Cancel")
    set()
    """
    text = _plain(name)
    anywhere = {hazard for hazard, pattern in _ANYWHERE.items() if pattern.search(text)}
    return anywhere | {hazard for hazard, pattern in _AT_FIRST.items() if pattern.match(text)}


def of_beginning(text: str) -> set[Hazard]:
    """Return the hazards that the beginning of a text indicates."""
    plain = _plain(text)
    return {hazard for words in (_ANYWHERE, _AT_FIRST) for hazard, pattern in words.items() if pattern.match(plain)}


def of_answer(name: str, question: Iterable[str]) -> set[Hazard]:
    """Return the hazards of an answer that agrees to a question.

    Args:
        name: The name of the pressed control.
        question: The texts of the dialog.
    """
    if not _AGREES.match(_plain(name)):
        return set()
    texts = [_plain(text) for text in question]
    return {hazard for hazard, pattern in _ANYWHERE.items() if any(map(pattern.search, texts))}
