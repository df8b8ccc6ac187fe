// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"
#include "pkg/hooks/hook_point.h"

namespace resmgr::hooks {

// What a field of a server's answer means that is not set there (empty or 0 in proto3).
enum class AnswerStyle {
  kEcho,    // koordlet's: the server repeats all that it does not change, so "not set" clears
  kSparse,  // "not set" means no change
};

// One hook server, as its file in the hook directory describes it. A value.
struct HookServerSettings {
  std::string file{};      // "koordlet.json": its name in logs, and its place in the order
  std::string endpoint{};  // path of its unix socket
  // What follows where it does not answer: a request goes on without it, or is refused. A server
  // refuses by an error too, so with kIgnore it cannot refuse anything.
  FailurePolicy failure = FailurePolicy::kIgnore;
  HookPointSet points{};
  std::chrono::milliseconds timeout{2'000};  // for one answer, time to connect included
  AnswerStyle style = AnswerStyle::kEcho;

  friend bool operator==(const HookServerSettings&, const HookServerSettings&) = default;
};

// A hook server, as the stage that asks it sees it. Loop's thread only.
class HookServerPort {
 public:
  // `request` and the answer are serialized messages of RuntimeHookService. Runs once, never inside
  // Ask, and not after the end of this object. DeadlineExceeded: no answer within the timeout.
  // Unavailable: not connected. Any other status: what the server itself answered.
  using Done = std::function<void(StatusOr<std::string>)>;

  virtual ~HookServerPort() = default;

  virtual const HookServerSettings& settings() const = 0;
  virtual void Ask(HookPoint point, std::string request, Done done) = 0;
};

// The hook servers that are configured at this moment. Loop's thread only.
class HookServersPort {
 public:
  virtual ~HookServersPort() = default;

  // Those that want to be asked at this point, in the order of their files' names. Each can be
  // asked as long as the caller holds it, also when its file is gone meanwhile.
  virtual std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const = 0;
};

}  // namespace resmgr::hooks
