#include "viz/kinds/findings_page.h"

#include "tests/catch.h"

namespace rollcall::viz::findings_page_test {

TEST_CASE("the page of findings is read section by section") {
  const std::vector<Explanation> found = read_findings(R"(# Findings

Of the whole page.

## race: timing decides

What it means,
on two lines.

- **Typical cause**: One
  reason.
- **Help**: This.

### watchdog_timeout: too slow

Meaning.

```text
## not a heading

- **not an item**
```

- **On Gloo**: [shared_text](#shared_text)
- **On NCCL**: The same.

## Shared texts

For readers of the page.

### shared_text

What several kinds
show.
)");
  REQUIRE(found.size() == 2);
  CHECK(found[0].word == "race");
  CHECK(found[0].title == "timing decides");
  CHECK(found[0].verdicts.empty());
  CHECK(found[0].meaning == "What it means, on two lines.");
  CHECK(found[0].cause == "One reason.");
  CHECK(found[0].advice == "This.");
  CHECK(found[1].word == "watchdog_timeout");
  CHECK(found[1].verdicts == "race");
  CHECK(found[1].example == "## not a heading\n\n- **not an item**");
  CHECK(found[1].on_gloo == "What several kinds show.");
  CHECK(found[1].on_nccl == "The same.");
  CHECK(found[1].reports.empty());
}

}  // namespace rollcall::viz::findings_page_test
