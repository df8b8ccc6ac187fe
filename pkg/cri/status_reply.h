// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/json.h"
#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"

// Shared by the readers of whole reply messages (runtime_facts.h), including the JSON text of
// verbose ones.

namespace resmgr {

using Json = nlohmann::json;

template <typename Message>
StatusOr<Message> ParseReply(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("the runtime's answer is a malformed {}", Message::descriptor()->name());
  }
  return message;
}

template <typename Map>
StringMap ToStringMap(const Map& map) {
  return StringMap(map.begin(), map.end());
}

ContainerState ToState(::runtime::v1::ContainerState state);

// The verbose info's entry "info". Null if absent, a discarded value if it is not JSON or nested
// deeper than kDeepestJson.
template <typename Map>
Json InfoOf(const Map& info) {
  const auto it = info.find("info");
  if (it == info.end()) return nullptr;
  return ParseJson(it->second).value_or(Json(Json::value_t::discarded));
}

// A nested value, which is a part of `json`; null if a step is missing.
const Json& At(const Json& json, std::initializer_list<const char*> path);

std::optional<int64_t> Number(const Json& json);
std::optional<std::string> Text(const Json& json);

// Adds the values of a status that a list does not have.
void AddInfo(const Json& info, Pod& pod);
void AddStatus(const ::runtime::v1::ContainerStatus& status, const Json& info,
               RuntimeContainer& container);

// Reads an OCI runtime specification (its config.json, version 1.0 to 1.2). Missing fields, or
// fields of another type, are empty.
std::string CgroupsPathOf(const Json& spec);
std::vector<LinuxNamespace> NamespacesOf(const Json& spec);

// `command` is the whole argument vector. Mounts are the bind mounts: others have no host path.
// Devices are left out: a specification has only their numbers, not their host paths.
ContainerDetails DetailsOf(const Json& spec);

// Reads a list of "NAME=value".
Environment EnvironmentOf(const Json& list);
// The strings among the elements of a list.
std::vector<std::string> TextsOf(const Json& list);

}  // namespace resmgr
