"""The contest: who is asked when, and the use made of the answers."""

from __future__ import annotations

from benchmarks.contest import Contender, Question, Spread, hold, ratio, spread


class Double:
    """A contender that answers from a list, and keeps the questions."""

    def __init__(self, key, answers, log):
        self.key = key
        self.closed = False
        self._answers = iter(answers)
        self._log = log

    def ask(self, asked):
        self._log.append((self.key, asked))
        return next(self._answers)

    def close(self):
        self.closed = True


def said(values):
    return [{"cpu": value, "round": number} for number, value in enumerate(values)]


def test_all_are_asked_in_turns_there_and_back_again():
    log = []
    questions = [Question(Double(key, [{"x": 1}] * 3, log), {}) for key in "ab"]
    answers = hold(questions, 3, 60.0, lambda _text: None)
    assert [key for key, _ in log] == ["a", "b", "b", "a", "a", "b"]
    assert [each["round"] for each in answers["a"]] == [0, 1, 2]


def test_failed_question_is_not_asked_again_and_is_reported():
    told, log = [], []
    questions = [Question(Double("a", [{"error": "broken"}], log), {"tasks": 1}, sized=True)]
    answers = hold(questions, 3, 60.0, told.append)
    assert len(log) == 1
    assert answers["a@1"][0]["error"] == "broken"
    assert "a@1: broken" in told


def test_slow_question_is_asked_once():
    log = []
    hold([Question(Double("a", [{"x": 1}] * 3, log), {})], 3, 0.0, lambda _text: None)
    assert len(log) == 1


def test_rows_of_one_contender_have_answers_of_their_own():
    contender = Double("a", [{"x": 1}, {"error": "broken"}, {"x": 3}], [])
    questions = [Question(contender, {"row": row}, row=row) for row in ("first", "second")]
    answers = hold(questions, 2, 60.0, lambda _text: None)
    assert [answer["x"] for answer in answers["a/first"]] == [1, 3]
    assert [answer["error"] for answer in answers["a/second"]] == ["broken"]


def test_all_contenders_are_closed_at_the_end():
    doubles = [Double(key, [{"x": 1}], []) for key in "ab"]
    hold([Question(double, {}) for double in doubles], 1, 60.0, lambda _text: None)
    assert all(double.closed for double in doubles)


def test_a_ratio_is_taken_within_each_round():
    answers = {"a": said([2.0, 8.0, 30.0]), "b": said([1.0, 2.0, 10.0])}
    assert ratio(answers, ("a", "cpu"), ("b", "cpu")) == Spread(2.5, 3.0, 3.5, 3)


def test_a_ratio_to_what_was_not_measured_is_none():
    assert ratio({"a": said([1.0])}, ("a", "cpu"), ("b", "cpu")) is None


def test_a_spread_has_the_median_and_the_quartiles():
    assert spread({"a": said([5.0, 1.0, 2.0, 3.0, 4.0])}, ("a", "cpu")) == Spread(2.0, 3.0, 4.0, 5)


def test_one_value_is_its_own_median_and_quartiles():
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 1)


def test_contender_that_ends_gives_an_error():
    contender = Contender("a", "benchmarks.nothing")
    assert contender.ask({"tasks": 1}).get("error") in {"the process is gone", "the process ended without an answer"}
    contender.close()
