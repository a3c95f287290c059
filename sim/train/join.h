#pragma once

// Join, Joinable, JoinHook: torch/distributed/algorithms/join.py, the same protocol call for call.
//
// A rank that runs out of inputs leaves the loop early; the others would wait for it in their next
// collective. Inside Join it "shadows" them instead: it repeats main_hook() once per iteration of the
// ranks that still have inputs, so every collective finds its partner.
//
//   every iteration of an active rank        every iteration of a joined rank
//     notify_join_context: all_reduce 1        count: all_reduce 0  (the sum = ranks still active)
//     the joinables' own collectives           main_hook of every joinable
//
// A count of 0 ends the loop, then post_hook runs everywhere.

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/error.h"
#include "sim/c10d/collectives.h"

namespace rollcall {

// Keyword arguments of Join(...), one set shared by all joinables.
using KwargValue = std::variant<bool, std::int64_t, double, std::string>;
using Kwargs = std::map<std::string, KwargValue>;

// kwargs.get(name, fallback). Throws TypeError when the value has another type.
template <typename T>
T get_or(const Kwargs& kwargs, const std::string& name, T fallback) {
  auto found = kwargs.find(name);
  if (found == kwargs.end()) {
    return fallback;
  }
  if (const T* value = std::get_if<T>(&found->second)) {
    return *value;
  }
  throw TypeError("keyword argument '" + name + "' has an unexpected type");
}

// What a joined rank does while others still have inputs. The defaults do nothing.
class JoinHook {
 public:
  virtual ~JoinHook() = default;
  // Shadows one iteration's collectives of an active rank. Called once per such iteration.
  virtual void main_hook() {}
  // Called once, after all ranks have joined. is_last_joiner is true on every rank that joined in
  // the last iteration; there may be several, and with equal inputs it is true everywhere.
  virtual void post_hook(bool is_last_joiner) { static_cast<void>(is_last_joiner); }
};

class Joinable {
 public:
  virtual ~Joinable() = default;
  // Makes this context's hook. Called by Join's constructor, with Join's keyword arguments.
  virtual std::unique_ptr<JoinHook> join_hook(const Kwargs& kwargs) = 0;
  virtual Device join_device() const = 0;
  virtual ProcessGroup join_process_group() const = 0;
  // True when the hook itself calls notify_join_context, as an active rank does. Such a joinable must not be the first
  // of Join's list. Used for reports only.
  virtual bool hook_notifies() const { return false; }
  // This joinable's name in reports. Its calls pair with its own hook's calls and no others.
  virtual std::string name() const { return "joinable"; }

  // Set by Join, and never reset: a joinable called after its context still notifies, as in torch.
  struct Config {
    bool enable = false;
    bool throw_on_early_termination = false;
    bool is_first_joinable = false;
    friend bool operator==(const Config&, const Config&) = default;
  };
  // Empty until a constructor sets it. In torch a subclass that forgets super().__init__() has none.
  std::optional<Config> join_config = Config{};
  std::int64_t notifications = 0;  // sent since Join's constructor saw it; for reports
};

struct JoinOptions {
  bool enable = true;
  bool throw_on_early_termination = false;
  Kwargs kwargs{};
};

// The joinables of one context, borrowed: they must outlive it.
class Joinables {
 public:
  Joinables(std::initializer_list<std::reference_wrapper<Joinable>> list) : list_(list) {}
  explicit Joinables(std::vector<std::reference_wrapper<Joinable>> list) : list_(std::move(list)) {}
  const std::vector<std::reference_wrapper<Joinable>>& list() const { return list_; }

 private:
  std::vector<std::reference_wrapper<Joinable>> list_;
};

// `with Join([...]): body`. A call rather than a scope object: leaving the context communicates, can
// throw, and is skipped when the body threw; a destructor must do none of these.
class Join {
 public:
  // No communication. Asks every joinable for its hook, then overwrites every joinable's config, then
  // throws ValueError when the list is empty or the process groups differ: the order is torch's.
  explicit Join(const Joinables& joinables, JoinOptions options = {});
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  // Runs `body`, then shadows until every rank has joined. Throws what the body throws (leaving the
  // others without this rank, as torch does), and RuntimeError on every rank under
  // throw_on_early_termination once some rank has run out of inputs.
  template <typename Body>
  void run(Body&& body) {
    std::forward<Body>(body)();
    leave();
  }

  // Tells the ranks that have joined that this one has not. Call it once per iteration, before the
  // joinable's own collectives. Only the first joinable of the list communicates: an asynchronous
  // all_reduce of 1 (its Work is returned) and, when throwing, a blocking
  // one. Throws RuntimeError when another rank has run out of inputs in throwing mode.
  static Work notify_join_context(Joinable& joinable, Site site = Site::here());
  // The same; `active_ranks` receives the tensor that counts the ranks with inputs once the Work is done, or a null
  // tensor when nothing was sent. In torch it is the Work's result.
  static Work notify_join_context(Joinable& joinable, Tensor& active_ranks, Site site);

  Device device() const { return device_; }

 private:
  void leave();
  std::int64_t shadow_until_everyone_joined();
  bool shadow_once(std::int64_t iteration);
  bool has_everyone_joined();
  [[noreturn]] void terminate_everyone();

  std::vector<std::reference_wrapper<Joinable>> joinables_;
  std::vector<std::unique_ptr<JoinHook>> hooks_;
  JoinOptions options_;
  ProcessGroup group_;
  Device device_;
};

}  // namespace rollcall
