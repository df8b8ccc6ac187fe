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

// The meaning of an unset field (empty or 0 in proto3) in a server's answer.
enum class AnswerStyle {
  kEcho,    // koordlet's style: the server repeats unchanged fields, so an unset field clears
  kSparse,  // an unset field means no change
};

// One hook server, as its file in the hook directory describes it. A value.
struct HookServerSettings {
  std::string file{};  // "koordlet.json": its name in logs; files are asked in the order of names
  std::string endpoint{};  // path of its unix socket
  // Whether a request goes on or is refused if the server does not answer. A server can only refuse
  // by an error, so with kIgnore it cannot refuse anything.
  FailurePolicy failure = FailurePolicy::kIgnore;
  HookPointSet points{};
  std::chrono::milliseconds timeout{2'000};  // for one answer, including the time to connect
  AnswerStyle style = AnswerStyle::kEcho;

  friend bool operator==(const HookServerSettings&, const HookServerSettings&) = default;
};

// A hook server as the stage sees it. Loop's thread only.
class HookServerPort {
 public:
  // `request` and the answer are serialized messages of RuntimeHookService. Runs once, never inside
  // Ask, and not after the end of this object. kDeadlineExceeded: no answer within the timeout.
  // kUnavailable: not connected. Any other status: the server's own answer.
  using Done = std::function<void(StatusOr<std::string>)>;

  virtual ~HookServerPort() = default;

  virtual const HookServerSettings& settings() const = 0;
  virtual void Ask(HookPoint point, std::string request, Done done) = 0;
};

// The currently configured hook servers. Loop's thread only.
class HookServersPort {
 public:
  virtual ~HookServersPort() = default;

  // The servers to be asked at this point, in the order of their files' names. The caller may ask
  // them as long as it holds them, even when their files are gone meanwhile.
  virtual std::vector<std::shared_ptr<HookServerPort>> ServersOf(HookPoint point) const = 0;
};

}  // namespace resmgr::hooks
