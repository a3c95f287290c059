#include "viz/ci/junit.h"

#include "tests/catch.h"
#include "viz/base/xml_text.h"

namespace rollcall::viz::junit_test {

TEST_CASE("a file's classname is its path in dots") {
  CHECK(junit_classname("scenarios/ddp/uneven.json") == "scenarios.ddp.uneven");
  CHECK(junit_classname("./a.fixed.json") == "a_fixed");
  CHECK(junit_classname("../../x/y.json") == "x.y");
  CHECK(junit_classname("/abs/y.json") == "abs.y");
}

TEST_CASE("XML holds no character that it forbids") {
  CHECK(xml_text("<a & \"b\">") == "&lt;a &amp; &quot;b&quot;&gt;");
  CHECK(xml_text("a\x01\x1b[31mb\tc\nd") == "ab&#9;c\nd");
  CHECK(xml_text("\xff\xc3\xa9\xef\xbf\xbe") == "\xef\xbf\xbd\xc3\xa9");
}

}  // namespace rollcall::viz::junit_test
