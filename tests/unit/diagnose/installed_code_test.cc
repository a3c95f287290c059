#include "sim/diagnose/installed_code.h"

#include "tests/catch.h"

namespace rollcall::check::installed_code_test {

TEST_CASE("files of Python, of torch and of installed packages are not the program's", "[flight-recorder]") {
  for (const char* file :
       {"/usr/lib/python3.12/threading.py",
        "/home/me/.venv/lib/python3.12/site-packages/transformers/trainer.py",
        "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "<frozen runpy>", "threading.py",
        "torch/utils/data/dataloader.py", "/work/pytorch/torch/distributed/distributed_c10d.py",
        "transformers/trainer.py", "multiprocessing/connection.py"}) {
    CAPTURE(file);
    CHECK(is_installed_code(file));
  }
  for (const char* file :
       {"train.py", "/home/me/pytorch/train.py", "/home/me/my_torch/nn/model.py",
        "/srv/jobs/transformers/finetune.py", "src/threading.py", "/root/torch/train.py"}) {
    CAPTURE(file);
    CHECK_FALSE(is_installed_code(file));
  }
}

}  // namespace rollcall::check::installed_code_test
