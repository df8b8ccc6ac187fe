// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/failure_policy.h"
#include "pkg/base/status.h"

namespace resmgr::hooks {

// The points at which hook servers are asked (Koordinator's RuntimeHookService v1alpha1). Pre...:
// before the runtime gets the call, and the answer may change it; Post...: after it.
enum class HookPoint : uint8_t {
  kPreRunPodSandbox,
  kPostStopPodSandbox,
  kPreCreateContainer,
  kPreStartContainer,
  kPostStartContainer,
  kPostStopContainer,
  kPreUpdateContainerResources,
};
inline constexpr size_t kHookPoints = 7;
using HookPointSet = std::bitset<kHookPoints>;

// The meaning of an unset field (empty or 0 in proto3) in a server's answer.
enum class AnswerStyle {
  kEcho,    // koordlet's style: the server repeats unchanged fields, so an unset field clears
  kSparse,  // an unset field means no change
};

// One hook server, as its file in the hook directory describes it. A value type.
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

// The name in hook files: "PreCreateContainer".
std::string_view NameOf(HookPoint point);
// nullopt for an unknown name, and for kInertPoint. Case-sensitive.
std::optional<HookPoint> HookPointOf(std::string_view name);

// A name that koordlet may list although RuntimeHookService has no method for it: no server is ever
// asked there.
inline constexpr std::string_view kInertPoint = "PreRemoveRunPodSandbox";

// The names of the set's hook points, in the order of HookPoint.
std::vector<std::string> NamesOf(HookPointSet points);

// The path of its gRPC method: "/runtime.v1alpha1.RuntimeHookService/PreCreateContainerHook".
std::string MethodOf(HookPoint point);

}  // namespace resmgr::hooks
