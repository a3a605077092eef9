import unittest

from handler import decide


class Echo(unittest.TestCase):
    def test_answers_an_input_once(self):
        hello = {"kind": "input", "text": "hello"}
        echo = {"kind": "echo", "text": "HELLO"}
        self.assertEqual(decide([hello]), echo)
        self.assertIsNone(decide([hello, echo]))


if __name__ == "__main__":
    unittest.main()
