// Errors in statements, as far as the file shows them.

#include <fmt/core.h>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/unit/scenarios/format/scenario_texts.h"

namespace rollcall::scenario::lowering_test {
namespace {

using test::problem;
using test::problems;
using test::quartet;

// Returns the only error in one statement; its pointer begins with "/program/0".
std::string wrong(const std::string& statement) { return problem(quartet(statement)); }

std::string with_counter(const std::string& lists, const std::string& statements) {
  return quartet(statements, R"("objects": {"counter": {"kind": "joinable", )" + lists + "}},");
}

const std::string forward_counter = R"({"forward": "counter"})";

}  // namespace

TEST_CASE("an unknown statement suggests a known one", "[scenarios]") {
  CHECK(wrong(R"({"al_reduce": "t"})") == "/program/0: unknown statement \"al_reduce\" -> all_reduce");
  CHECK(wrong(R"({"AllReduce": "t"})") == "/program/0: unknown statement \"AllReduce\" -> all_reduce");
  CHECK(wrong(R"({"xyzzy": 1})") == "/program/0: unknown statement \"xyzzy\"");
  CHECK(wrong(R"({})") == "/program/0: this statement is empty");
  CHECK(wrong(R"("barrier")") ==
        "/program/0: a statement is an object such as {\"barrier\": {}}, not a string");
}

TEST_CASE("arguments of later versions are refused by name", "[scenarios]") {
  CHECK(wrong(R"({"all_reduce": {"timeout": "5s"}})") ==
        "/program/0/all_reduce/timeout: the argument \"timeout\" is not supported by this version");
  CHECK(wrong(R"({"compute": "5ms", "timeout": "1ms"})") ==
        "/program/0/timeout: the argument \"timeout\" is not supported by this version");
  CHECK(wrong(R"({"compute": "5ms", "jitter": "1ms"})") ==
        "/program/0/jitter: \"ms\" is not a unit of part; the units are %");
  CHECK(wrong(R"({"compute": "5ms", "jitter": "10"})") ==
        "/program/0/jitter: a part needs a unit, such as \"10%\"");
}

TEST_CASE("a kernel has a time, or work that a known GPU does", "[scenarios]") {
  const std::string either =
      "/program/0/kernel: a kernel has either a \"time\", or \"flops\" and \"bytes\" that a time follows "
      "from";
  CHECK(wrong(R"({"kernel": {"name": "mlp"}})") == either);
  CHECK(problem(quartet(R"({"kernel": {"time": "1ms", "flops": 1}})", R"("cluster": "h100-4",)")) == either);
  CHECK(wrong(R"({"kernel": {"flops": 1}})") ==
        "/program/0/kernel: without a cluster the speed of a GPU is unknown: add \"cluster\": "
        "\"h100-8\", or write a time instead");
  CHECK(problem(quartet(R"({"kernel": {"flops": 1, "kind": "matmull"}})", R"("cluster": "h100-4",)")) ==
        "/program/0/kernel/kind: unknown kind of kernel \"matmull\"; use one of matmul, attention, "
        "elementwise, reduction, embedding, copy -> matmul");
  CHECK(problem(quartet(R"({"kernel": {"flops": 1, "dtype": "float8"}})", R"("cluster": "a100-4",)")) ==
        "/program/0/kernel/dtype: A100 SXM 80 GB has no units for this type");
  CHECK(problem(quartet(R"({"kernel": {"flops": -1}})", R"("cluster": "h100-4",)")) ==
        "/program/0/kernel/flops: expected a number from 0 to 1e24");
}

TEST_CASE("an object holds one statement", "[scenarios]") {
  CHECK(
      wrong(R"({"barrier": {}, "all_reduce": {}})") ==
      "/program/0/all_reduce: \"barrier\" and \"all_reduce\" are two statements; put each in its own object");
}

TEST_CASE("a site is a file and a line", "[scenarios]") {
  const std::string expected = "expected a file and a line, such as \"train.py:61\"";
  for (const char* site : {"train.py", "train.py:", ":61", "train.py:0", "train.py:61b"}) {
    CHECK(wrong(fmt::format(R"({{"barrier": {{"site": "{}"}}}})", site)) ==
          "/program/0/barrier/site: " + expected);
  }
}

TEST_CASE("unknown and doubled arguments are errors", "[scenarios]") {
  CHECK(
      wrong(R"({"barrier": {"gruop": "world"}})") ==
      "/program/0/barrier/gruop: \"barrier\" has no argument \"gruop\"; it takes group, label, site, stream, "
      "async_op, as, device -> group");
  CHECK(wrong(R"({"all_reduce": {}, "redcue_op": "MAX"})").ends_with("-> reduce_op"));
  CHECK(wrong(R"({"barrier": {}, "src": 0})")
            .starts_with("/program/0/src: \"barrier\" has no argument \"src\""));
  CHECK(wrong(R"({"all_reduce": {"numel": 1}, "numel": 2})") ==
        "/program/0/numel: \"numel\" is given twice, inside \"all_reduce\" and next to it");
  CHECK(wrong(R"({"all_reduce": "t", "tensor": "t", "value": 1})") ==
        "/program/0/tensor: \"tensor\" is already given as the value of \"all_reduce\"");
  CHECK(wrong(R"({"all_reduce": {"shape": [2], "numel": 2}})") ==
        "/program/0/all_reduce/numel: give either \"shape\" or \"numel\"");
}

TEST_CASE("missing arguments are errors", "[scenarios]") {
  CHECK(wrong(R"({"fill": "t"})") == "/program/0: \"fill\" needs \"value\"");
  CHECK(wrong(R"({"fill": "t", "value": 1}, {"check": "t"})") == "/program/1: \"check\" needs \"value\"");
  CHECK(wrong(R"({"copy": "t"})") == "/program/0: \"copy\" needs \"from\"");
  CHECK(wrong(R"({"add": "t"})") == "/program/0: \"add\" needs either \"tensor\" or \"value\"");
  CHECK(wrong(R"({"repeat": 3})") == "/program/0: \"repeat\" needs \"do\"");
  CHECK(wrong(R"({"for": "i", "do": []})") == "/program/0: \"for\" needs \"in\"");
  CHECK(wrong(R"({"if": "rank == 0"})") == "/program/0: \"if\" needs \"do\"");
  CHECK(wrong(R"({"try": {"do": []}})") == "/program/0: \"try\" needs \"except\"");
}

TEST_CASE("arguments of the wrong kind are errors", "[scenarios]") {
  CHECK(wrong(R"({"all_reduce": 5})") ==
        "/program/0/all_reduce: expected a tensor's name or an object of arguments, found an integer");
  CHECK(wrong(R"({"barrier": "world"})").starts_with("/program/0/barrier: a barrier has no tensor"));
  CHECK(wrong(R"({"all_reduce": {"numel": [4]}})") ==
        "/program/0/all_reduce/numel: expected an integer or an expression, found an array");
  CHECK(wrong(R"({"all_reduce": {"numel": 0.5}})") ==
        "/program/0/all_reduce/numel: expected an integer or an expression, found a floating-point number");
  CHECK(wrong(R"({"all_reduce": {"async_op": 1}})") ==
        "/program/0/all_reduce/async_op: expected true or false, found an integer");
  CHECK(wrong(R"({"compute": 5})") == "/program/0/compute: a duration needs a unit, such as \"5ms\"");
  CHECK(wrong(R"({"compute": []})") ==
        "/program/0/compute: expected a duration such as \"5ms\", found an array");
  CHECK(wrong(R"({"exit": false})") == "/program/0/exit: write {\"exit\": true}");
  CHECK(wrong(R"({"repeat": 2, "do": {}})") ==
        "/program/0/do: expected a list of statements, found an object");
  CHECK(wrong(R"({"for": "i", "in": [0], "do": []})") ==
        "/program/0/in: expected [first, end]: the variable counts from first to end - 1");
  CHECK(wrong(R"({"join": "counter", "do": []})") ==
        "/program/0/join: expected a list of objects, such as [\"counter\"]");
  CHECK(wrong(R"({"try": []})") == "/program/0/try: write {\"try\": {\"do\": [...], \"except\": [...]}}");
  CHECK(wrong(R"({"raise": 5})") ==
        "/program/0/raise: expected a message or {\"type\": …, \"message\": …}, found an integer");
}

TEST_CASE("numbers out of range are errors", "[scenarios]") {
  CHECK(wrong(R"({"all_reduce": {"numel": -4}})") == "/program/0/all_reduce/numel: numel cannot be negative");
  CHECK(wrong(R"({"all_reduce": {"numel": "2 - 6"}})") ==
        "/program/0/all_reduce/numel: numel cannot be negative");
  CHECK(wrong(R"({"all_reduce": {"numel": 9000000000000}})") ==
        "/program/0/all_reduce/numel: numel must lie between 0 and 100000000000");
  CHECK(wrong(R"({"all_reduce": {"shape": [2, -1]}})") ==
        "/program/0/all_reduce/shape/1: a size is a non-negative integer");
  CHECK(wrong(R"({"all_reduce": {"shape": [9999999999, 9999999999]}})") ==
        "/program/0/all_reduce/shape: a tensor holds at most 100000000000 elements");
  CHECK(wrong(R"({"broadcast": {"src": 4}})") ==
        "/program/0/broadcast/src: rank 4 is out of range: ranks are 0 to 3");
  CHECK(wrong(R"({"reduce": {"dst": -1}})") ==
        "/program/0/reduce/dst: rank -1 is out of range: ranks are 0 to 3");
  CHECK(wrong(R"({"repeat": -1, "do": []})") ==
        "/program/0/repeat: a number of repetitions cannot be negative");
  CHECK(wrong(R"({"all_reduce": {"numel": true}})") ==
        "/program/0/all_reduce/numel: expected numel as an integer or an expression, found a boolean");
  CHECK(
      wrong(R"({"repeat": true, "do": []})") ==
      "/program/0/repeat: expected a number of repetitions as an integer or an expression, found a boolean");
}

TEST_CASE("unknown words are errors with a suggestion", "[scenarios]") {
  CHECK(wrong(R"({"all_reduce": {"dtype": "float23"}})").ends_with("-> float32"));
  CHECK(wrong(R"({"all_reduce": {"reduce_op": "MXA"}})").ends_with("-> MAX"));
  CHECK(wrong(R"({"all_reduce": {"device": "gpu"}})")
            .starts_with("/program/0/all_reduce/device: \"gpu\" is not a device"));
  CHECK(problem(quartet(R"({"barrier": {"group": "evns"}})", R"("groups": {"evens": [0, 2]},)")) ==
        "/program/0/barrier/group: unknown group \"evns\"; the groups are evens, world -> evens");
  CHECK(problem(with_counter(R"("forward": [])", R"({"forward": "countr"})")) ==
        "/program/0/forward: unknown object \"countr\"; \"objects\" must define it -> counter");
  CHECK(problem(with_counter(R"("forward": [])", R"({"join": ["conter"], "do": []})")) ==
        "/program/0/join/0: unknown object \"conter\"; \"objects\" must define it -> counter");
}

TEST_CASE("tensors and works must be made somewhere", "[scenarios]") {
  CHECK(wrong(R"({"fill": "grads", "value": 1}, {"all_reduce": "grad"})") ==
        "/program/1/all_reduce: unknown tensor \"grad\"; create it with {\"fill\": \"grad\", \"value\": 0} "
        "or give the call a value or numel -> grads");
  CHECK(wrong(R"({"fill": "grads", "value": 1}, {"check": "grds", "value": 1})") ==
        "/program/1/check: unknown tensor \"grds\" -> grads");
  CHECK(wrong(R"({"all_reduce": {"async_op": true, "as": "work"}}, {"wait": "wrok"})") ==
        "/program/1/wait: unknown name \"wrok\"; an asynchronous call gets its name from \"as\" -> work");
  CHECK(wrong(R"({"all_reduce": {"as": "work"}})") ==
        "/program/0/all_reduce/as: \"as\" names what an asynchronous call returns: add \"async_op\": true");
  CHECK(problems(quartet(R"({"all_reduce": "t"}, {"fill": "t", "value": 0})"))
            .empty());  // created later, but it exists
}

TEST_CASE("a name means one thing", "[scenarios]") {
  CHECK(wrong(R"({"fill": "t", "value": 1}, {"item": "t", "as": "t"})") ==
        "/program/1/as: \"t\" is a variable here, but a tensor elsewhere; use different names");
  CHECK(wrong(R"({"fill": "x", "value": 1}, {"for": "x", "in": [0, 1], "do": []})") ==
        "/program/1/for: \"x\" already means something else; use another name");
  CHECK(wrong(R"({"for": "rank", "in": [0, 1], "do": []})") ==
        "/program/0/for: \"rank\" already means something else; use another name");
  CHECK(wrong(R"({"for": "my var", "in": [0, 1], "do": []})") ==
        "/program/0/for: \"my var\" is not a valid name: use letters, digits, _ and dots; it must not begin "
        "with a digit");
  CHECK(wrong(R"({"fill": "1+1", "value": 1})") ==
        "/program/0/fill: \"1+1\" is not a valid name: use letters, digits, _ and dots; it must not begin "
        "with a digit");
  CHECK_FALSE(problems(quartet(R"({"fill": "x[0]", "value": 1})")).empty());
  CHECK_FALSE(problems(quartet(R"({"all_reduce": "x y"})")).empty());
  CHECK_FALSE(problems(quartet(R"({"for": "kwargs.x", "in": [0, 1], "do": []})")).empty());
  CHECK(
      problems(quartet(R"({"fill": "layer.0.weight", "value": 1}, {"print": "{layer.0.weight}"})")).empty());
  CHECK(wrong(R"({"all_gather": {"tensor": "t", "value": 1, "output": "t"}})").find("use different names") !=
        std::string::npos);
  CHECK(wrong(R"({"all_to_all_single": {"tensor": "t", "value": 1, "output": "t"}})") ==
        "/program/0/all_to_all_single/output: the output needs its own tensor; give it another name");
}

TEST_CASE("expressions know the names of their place", "[scenarios]") {
  CHECK(wrong(R"({"if": "rnak == 0", "do": []})") == "/program/0/if: unknown name \"rnak\" -> rank");
  CHECK(wrong(R"({"fill": "t", "value": 1}, {"if": "t == 1", "do": []})") ==
        "/program/1/if: \"t\" is a tensor; read it with {\"item\": \"t\", \"as\": \"…\"} first");
  CHECK(wrong(R"({"for": "i", "in": [0, 2], "do": []}, {"print": "{i}"})") ==
        "/program/1/print: unknown name \"i\"");
  CHECK(wrong(R"({"if": "is_last_joiner", "do": []})") ==
        "/program/0/if: is_last_joiner is only available in a post_hook");
  CHECK(wrong(R"({"if": "kwargs.sync", "do": []})") ==
        "/program/0/if: keyword arguments are only available in main_hook and post_hook");
  CHECK(wrong(R"({"all_reduce": {"value": "peer"}})") ==
        "/program/0/all_reduce/value: peer is only available in the value of scatter, reduce_scatter and "
        "all_to_all");
  CHECK(wrong(R"({"print": "{error}"})") ==
        "/program/0/print: \"error\" is text; it can only be printed, in an \"except\" block");
  CHECK(problems(with_counter(R"("post_hook": [{"if": "is_last_joiner && kwargs.sync", "do": []}])",
                              forward_counter))
            .empty());
  CHECK(problem(with_counter(R"("main_hook": [{"if": "is_last_joiner", "do": []}])", forward_counter)) ==
        "/objects/counter/main_hook/0/if: is_last_joiner is only available in a post_hook");
}

TEST_CASE("errors inside a text point at the place", "[scenarios]") {
  const std::string text = quartet(R"({"print": "rank {rank} has {cuont}"}, {"fill": "count", "value": 0})");
  try {
    parse_scenario(text, "a.json");
    FAIL("accepted");
  } catch (const InvalidScenario& invalid) {
    REQUIRE(invalid.diagnostics().size() == 1);
    CHECK(invalid.diagnostics()[0].column == text.find("cuont") + 1);
    CHECK(invalid.diagnostics()[0].suggestion == "count");
  }
  CHECK(wrong(R"({"print": "a {rank"})") ==
        "/program/0/print: a single '{'; write a brace twice to print it");
  CHECK(wrong(R"({"print": "a } b"})") == "/program/0/print: a single '}'; write a brace twice to print it");
  CHECK(wrong(R"({"print": "{}"})") == "/program/0/print: the expression is empty");
}

TEST_CASE("blocks stand where they can", "[scenarios]") {
  CHECK(wrong(R"({"break": true})") == "/program/0: \"break\" is outside any loop");
  CHECK(wrong(R"({"for_each_input": "x", "do": []})") ==
        "/program/0: \"for_each_input\" needs \"inputs\" at the top of the scenario");
  CHECK(problem(with_counter(R"("forward": [{"forward": "counter"}])", forward_counter)) ==
        "/objects/counter/forward/0: \"forward\" inside an object is not supported by this version");
  CHECK(problem(with_counter(R"("forward": [{"join": ["counter"], "do": []}])", forward_counter)) ==
        "/objects/counter/forward/0: \"join\" inside an object is not supported by this version");
  std::string deep = R"({"barrier": {}})";
  for (int i = 0; i < 9; ++i) {
    deep = R"({"try": {"except": [], "do": [)" + deep + "]}}";
  }
  CHECK(wrong(deep).ends_with("\"join\", \"try\", \"choice\" and \"parallel\" can be nested at most 8 deep"));
}

TEST_CASE("a list of bad statements reports each, up to twenty", "[scenarios]") {
  CHECK(problems(
            quartet(R"({"foo": 1}, {"barrier": {}}, {"wait": "w"}, {"if": "rank ==", "do": [{"bar": 1}]})"))
            .size() == 4);
  std::string many;
  for (int i = 0; i < 50; ++i) {
    many += i == 0 ? R"({"xyzzy": 1})" : R"(, {"xyzzy": 1})";
  }
  CHECK(problems(quartet(many)).size() == 20);
}

TEST_CASE("a functional collective names its result", "[scenarios]") {
  CHECK(wrong(R"({"funcol.all_reduce": {"value": 1}})") ==
        "/program/0: \"funcol.all_reduce\" needs \"output\"");
  CHECK(
      wrong(R"({"parallel": [[{"funcol.all_reduce": {"value": 1, "output": "sum"}}], []]})") ==
      "/program/0/parallel/0/0: \"funcol.all_reduce\" inside \"parallel\" is not supported by this version");
}

TEST_CASE("a statement of a later release is refused, with its older name", "[scenarios]") {
  const auto on = [](const std::string& torch, const std::string& statement) {
    return problem(quartet(statement, R"("torch": ")" + torch + R"(",)"));
  };
  CHECK(
      on("2.6", R"({"all_gather_single": {"value": 1}})") ==
      "/program/0: torch.distributed of PyTorch 2.6 has no all_gather_single, which came with 2.14; there it "
      "is all_gather_into_tensor");
  CHECK(on("1.13", R"({"gather_single": {"value": 1}})") ==
        "/program/0: torch.distributed of PyTorch 1.13 has no gather_single, which came with 2.14");
  CHECK(on("1.13", R"({"funcol.all_reduce": {"value": 1, "output": "sum"}})") ==
        "/program/0: torch.distributed of PyTorch 1.13 has no funcol.all_reduce, which came with 2.6");
  CHECK(on("1.13", R"({"split_group": {}})") ==
        "/program/0: torch.distributed of PyTorch 1.13 has no split_group, which came with 2.6");
}

}  // namespace rollcall::scenario::lowering_test
