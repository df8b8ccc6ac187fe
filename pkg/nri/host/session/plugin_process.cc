// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_process.h"

#include <algorithm>
#include <utility>

#include "pkg/nri/plugin_name.h"

namespace resmgr::nri {
namespace {

// Executing a file whose disk hangs is left to the thread.
constexpr std::chrono::milliseconds kPatience{0};

}  // namespace

PluginProcess::PluginProcess(EventLoop& loop, Owner& owner, const HostOptions& options,
                             PluginFile plugin)
    : loop_(loop),
      owner_(owner),
      options_(options),
      plugin_(std::move(plugin)),
      full_name_(FullPluginName(plugin_.index, plugin_.name)),
      log_(GetLogger("nri/host")),
      off_loop_(loop, "nri-launch", kPatience),
      pauses_(options.first_restart, options.last_restart) {}

PluginProcess::~PluginProcess() = default;

void PluginProcess::Start() {
  restart_.reset();
  const Status begun = off_loop_.Run([this, plugin = plugin_]() -> EventLoop::Task {
    using Child = StatusOr<std::unique_ptr<ChildProcess>>;
    const auto child = std::make_shared<Child>(ChildProcess::Start(plugin));
    return [this, child] { OnStarted(std::move(*child)); };
  });
  if (!begun.ok()) OnStarted(begun);
}

void PluginProcess::OnStarted(StatusOr<std::unique_ptr<ChildProcess>> child) {
  if (!child.ok()) {
    const std::string again = StartLater();
    return owner_.OnNotStarted(plugin_, Unavailable("{}; {}", Message(child.status()), again));
  }
  child_ = *std::move(child);
  started_ = loop_.Now();
  output_ = std::make_unique<PluginOutput>(loop_, child_->TakeOutput(), full_name_);
  exit_ = loop_.Watch(child_->group().pidfd(), EventLoop::kReadable, [this](int) { OnExit(); });
  session_ = owner_.OnStarted(plugin_, child_->TakeSocket(), child_->group().pid());
  if (session_ == nullptr) Restart();
}

// Its session ends by itself, after it has read the remaining bytes.
void PluginProcess::OnExit() {
  const pid_t pid = child_->group().pid();
  const auto end = child_->group().Reap();
  if (!end) return;
  const std::string how = end->ToString();
  log_.Warn("plugin {} (pid {}) has ended: {}", full_name_, pid, how);
  const std::string last = output_ == nullptr ? std::string() : output_->LastLine();
  session_ = nullptr;
  exit_.reset();
  child_.reset();
  if (loop_.Now() - started_ > options_.last_restart) pauses_.Reset();
  const std::string again = StartLater();
  owner_.OnExited(plugin_, Unavailable("it has ended: {}{}; {}", how,
                                       last.empty() ? "" : fmt::format(", \"{}\"", last), again));
}

void PluginProcess::Restart() {
  session_ = nullptr;
  if (child_ != nullptr) child_->group().Kill();
}

std::string PluginProcess::StartLater() {
  const std::chrono::milliseconds pause = pauses_.Next();
  std::string again = fmt::format("is started again in {} ms", pause.count());
  log_.Info("plugin {} {}", full_name_, again);
  restart_ = loop_.After(pause, [this] { Start(); });
  return "it " + again;
}

}  // namespace resmgr::nri
