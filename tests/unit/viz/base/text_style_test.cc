#include "viz/base/text_style.h"
#include "tests/catch.h"

namespace rollcall::viz::text_style_test {

TEST_CASE("the option --color wins over the environment") {
  CHECK(wants_color(ColorChoice::always,
                    {.is_terminal = false, .no_color = "1", .term = "dumb", .clicolor_force = ""}));
  CHECK_FALSE(wants_color(ColorChoice::never,
                          {.is_terminal = true, .no_color = "", .term = "", .clicolor_force = "1"}));
}

TEST_CASE("without --color a terminal has color unless NO_COLOR or TERM=dumb say no") {
  Terminal terminal{.is_terminal = true, .no_color = "", .term = "xterm", .clicolor_force = ""};
  CHECK(wants_color(ColorChoice::automatic, terminal));
  terminal.no_color = "0";  // any text means no
  CHECK_FALSE(wants_color(ColorChoice::automatic, terminal));
  terminal.no_color = "";
  terminal.term = "dumb";
  CHECK_FALSE(wants_color(ColorChoice::automatic, terminal));
}

TEST_CASE("a pipe has no color unless CLICOLOR_FORCE says so") {
  Terminal pipe;
  CHECK_FALSE(wants_color(ColorChoice::automatic, pipe));
  pipe.clicolor_force = "0";
  CHECK_FALSE(wants_color(ColorChoice::automatic, pipe));
  pipe.clicolor_force = "1";
  CHECK(wants_color(ColorChoice::automatic, pipe));
  pipe.no_color = "1";
  CHECK_FALSE(wants_color(ColorChoice::automatic, pipe));
}

TEST_CASE("painting changes nothing where there is no color") {
  CHECK(paint("deadlock", Look::error, false) == "deadlock");
  CHECK(paint("deadlock", Look::error, true) == "\x1b[1;31mdeadlock\x1b[0m");
  CHECK(paint("deadlock", Look::plain, true) == "deadlock");
  CHECK(paint("", Look::error, true).empty());
}

TEST_CASE("text from programs cannot command the terminal") {
  CHECK(printable("plain, with spaces") == "plain, with spaces");
  CHECK(printable("a\x1b[2Jb\n\t\r\x7f") == "a\\x1b[2Jb\\n\\t\\r\\x7f");
  CHECK(printable("Gr\xc3\xb6\xc3\x9f"
                  "e \xe2\x82\xac \xf0\x9f\x90\xa2") ==
        "Gr\xc3\xb6\xc3\x9f"
        "e \xe2\x82\xac \xf0\x9f\x90\xa2");
  CHECK(printable("\xff\xc3") == "\\xff\\xc3");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");           // a C1 control sequence introducer
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // an overlong slash
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half of a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
}

TEST_CASE("width counts characters") {
  CHECK(display_width("abc") == 3);
  CHECK(display_width("\xc3\xb6") == 1);
}

TEST_CASE("text breaks at spaces and at its own line ends") {
  using Lines = std::vector<std::string>;
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("one two three", 100) == Lines{"one two three"});
  CHECK(wrap("a_very_long_word and", 6) == Lines{"a_very_long_word", "and"});
  CHECK(wrap("first\nsecond\n", 100) == Lines{"first", "second"});
  CHECK(wrap("  kept", 100) == Lines{"  kept"});
  CHECK(wrap("", 100) == Lines{""});
  CHECK(wrap("waits for rank 0", 14) == Lines{"waits for", "rank 0"});  // a number stays with its noun
  CHECK(wrap("in all_reduce #3 of", 13) == Lines{"in", "all_reduce #3", "of"});
  CHECK(wrap("rank 0", 4) == Lines{"rank", "0"});  // unless they do not fit
}

}  // namespace rollcall::viz::text_style_test
