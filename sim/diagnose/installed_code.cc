#include "sim/diagnose/installed_code.h"

#include <algorithm>
#include <array>

namespace rollcall::check {

namespace {

constexpr std::array<std::string_view, 2> packages_folders = {"site-packages/", "dist-packages/"};
// Like these, anywhere in a path.
constexpr std::array<std::string_view, 3> folders = {"/lib/python", "<frozen", "rollcall_recorder/"};
// At the beginning of a path or after a slash: a torch that is built in place is not in a folder of packages.
constexpr std::array<std::string_view, 8> of_torch = {
    "torch/distributed/", "torch/nn/",   "torch/autograd/",        "torch/optim/",
    "torch/utils/",       "torch/cuda/", "torch/multiprocessing/", "torch/_"};
// Only at the beginning of a path.
constexpr std::array<std::string_view, 23> packages = {
    "torch/",        "torchvision/",     "transformers/", "accelerate/",  "lightning/", "pytorch_lightning/",
    "deepspeed/",    "torchmetrics/",    "datasets/",     "numpy/",       "asyncio/",   "concurrent/",
    "threading.py",  "multiprocessing/", "queue.py",      "selectors.py", "socket.py",  "ssl.py",
    "subprocess.py", "contextlib.py",    "functools.py",  "runpy.py",     "signal.py"};

}  // namespace

bool is_installed_code(std::string_view file) {
  const auto has = [file](std::string_view mark) { return file.find(mark) != std::string_view::npos; };
  const auto begins = [file](std::string_view mark) { return file.starts_with(mark); };
  const auto is_of_torch = [file](std::string_view mark) {
    const std::size_t place = file.find(mark);
    return place != std::string_view::npos && (place == 0 || file[place - 1] == '/');
  };
  return std::ranges::any_of(packages_folders, has) || std::ranges::any_of(folders, has) ||
         std::ranges::any_of(of_torch, is_of_torch) || std::ranges::any_of(packages, begins);
}

std::string_view without_packages_folder(std::string_view file) {
  for (const std::string_view folder : packages_folders) {
    if (const std::size_t place = file.rfind(folder); place != std::string_view::npos) {
      return file.substr(place + folder.size());
    }
  }
  return file;
}

}  // namespace rollcall::check
