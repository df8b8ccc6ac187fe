// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr::docker {

// The actions on containers that are intercepted.
enum class Action : uint8_t { kCreate, kStart, kStop, kKill, kRestart, kUpdate, kRemove };

struct RequestTarget {
  Action action = Action::kCreate;
  // The container's id, the beginning of the id, or the container's name; unused for kCreate.
  std::string container{};
  std::string name{};    // kCreate: name of the new container; "": dockerd chooses one
  std::string signal{};  // kKill; "": the default signal
  // The minor version of the request's API, 39 for "/v1.39/..."; nullopt: the newest version that
  // dockerd has.
  std::optional<uint64_t> api_minor{};
};

// Reads the target as dockerd routes it: percent-encoded or not, a path or an absolute URL, with or
// without an API version. nullopt: another request, which passes. Pure function.
std::optional<RequestTarget> ReadTarget(std::string_view method, std::string_view target);

// The path without a version in front, like "/v1.41".
std::string_view WithoutVersion(std::string_view path);

// Whether the signal is SIGKILL, the default for "".
bool IsKill(std::string_view signal);

}  // namespace resmgr::docker
