// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr::docker {

// What a request of the Docker API does to containers, as far as that is looked at.
enum class Action : uint8_t { kCreate, kStart, kStop, kKill, kRestart, kUpdate, kRemove };

struct RequestTarget {
  Action action = Action::kCreate;
  // Of all but kCreate: a container's id, a beginning of it, or its name.
  std::string container{};
  std::string name{};    // kCreate: of the container to be; "": dockerd chooses one
  std::string signal{};  // kKill; "": the default one
  // The minor version of the request's API, 39 for "/v1.39/..."; nullopt: dockerd's newest.
  std::optional<uint64_t> api_minor{};
};

// Reads the target as dockerd routes it: percent-encoded or not, a path or an absolute URL, behind
// any API version or none.
// nullopt: it is none of these, and passes. Pure function.
std::optional<RequestTarget> ReadTarget(std::string_view method, std::string_view target);

// For the path of a request of ours.
std::string PercentEncoded(std::string_view text);

// Whether the signal ends every container.
bool IsKill(std::string_view signal);

}  // namespace resmgr::docker
