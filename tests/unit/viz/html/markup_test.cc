#include "viz/html/markup.h"
#include "tests/catch.h"

namespace rollcall::viz::markup_test {

namespace {

std::string text(std::string_view content) { return Markup().text(content).str(); }

}  // namespace

TEST_CASE("text of a page cannot become markup") {
  CHECK(text("</script><b a='x' c=\"y\">&amp;") ==
        "&lt;/script&gt;&lt;b a=&#39;x&#39; c=&quot;y&quot;&gt;&amp;amp;");
  CHECK(Markup().open("p", {{"title", "\" onclick=\"alert(1)"}}).str() ==
        "<p title=\"&quot; onclick=&quot;alert(1)\">");
}

TEST_CASE("attributes with nothing to say are left out") {
  CHECK(Markup().open("td", {{"class", ""}, {"align", "left"}}).str() == "<td align=\"left\">");
}

TEST_CASE("controls of a terminal or of the writing direction are written out") {
  CHECK(text("a\x1b[31m\nb") == "a\\x1b[31m\\nb");
  CHECK(text("user\u202egnp.exe") == "user\\u202egnp.exe");
  CHECK(text("\xff") == "\\xff");
}

TEST_CASE("foreign scripts are isolated from the text around them") {
  CHECK(text("rank \u05d0\u05d1 5") == "rank <bdi>\u05d0\u05d1</bdi> 5");
}

TEST_CASE("long words may be broken and long texts end with a count") {
  CHECK(text(std::string(50, 'x')) == std::string(40, 'x') + "<wbr>" + std::string(10, 'x'));
  const std::string shown = text(std::string(10'000, 'x'));
  CHECK_THAT(shown, EndsWith("&hellip; (9000 more characters)"));
  CHECK(shown.size() < 1300);
}

TEST_CASE("a clipped text counts characters, not bytes") {
  CHECK(clipped("\u00e4\u00f6\u00fc", 3) == "\u00e4\u00f6\u00fc");
  CHECK(clipped("\u00e4\u00f6\u00fc!", 3) == "\u00e4\u00f6\u2026");
}

}  // namespace rollcall::viz::markup_test
