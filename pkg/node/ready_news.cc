// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/ready_news.h"

#include <chrono>
#include <utility>

#include "pkg/sys/notify.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kRuntimeLookPeriod{200};

}  // namespace

ReadyNews::ReadyNews(EventLoop& loop, std::string what, std::function<std::string()> runtime_state)
    : what_(std::move(what)), runtime_state_(std::move(runtime_state)) {
  if (const Status status = NotifyReady(); !status.ok()) log_.Warn("{}", Message(status));
  const std::string problem = RuntimeProblem();
  if (problem.empty()) {
    log_.Info("ready: {}", what_);
    return;
  }
  log_.Info("not ready yet: {}; the runtime is away: {}", what_, problem);
  ShowStatus("waiting for the runtime: " + problem);
  timer_ = loop.Every(kRuntimeLookPeriod, [this] { Look(); });
}

std::string ReadyNews::RuntimeProblem() const {
  std::string state = runtime_state_();
  return state == "connected" || state == "not used" ? "" : state;
}

void ReadyNews::Look() {
  if (!RuntimeProblem().empty()) return;
  log_.Info("ready: {}", what_);
  ShowStatus("");
  timer_.reset();
}

void ReadyNews::ShowStatus(const std::string& text) {
  if (const Status status = NotifyStatus(text); !status.ok()) log_.Warn("{}", Message(status));
}

}  // namespace resmgr
