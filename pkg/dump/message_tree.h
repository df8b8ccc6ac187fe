// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pkg/dump/dumped_call.h"

namespace google::protobuf {

class Message;

}  // namespace google::protobuf

namespace resmgr::dump {

// A message as a JSON object: names as in the proto text, numbers for enums, base64 for bytes,
// without unset fields. Fields that our proto text does not have are in a list `unknown_fields`, by
// number and kind. Their contents are shown only with `show_secrets`, as secrets are: credentials
// of a registry, values of environment variables, and the free-form `info` of verbose replies, in
// which runtimes repeat both.
nlohmann::json ToTree(const google::protobuf::Message& message, bool show_secrets);

// The same for a payload, decoded as a message of `type` (null: unknown). Shows the readable part
// of a truncated payload, and only the size of a malformed one.
nlohmann::json ToTree(const Payload& payload, const google::protobuf::Message* type,
                      bool show_secrets);

// The tree of a payload of the Docker API, which is JSON: its `encoding` is "json". Without
// `show_secrets`, values of environment variables ("Env"), credentials (for example AuthConfig) and
// a manifest in an annotation are hidden. Only the size of invalid JSON is shown. Pure function.
nlohmann::json JsonTree(const Payload& payload, bool show_secrets);

// Whether the annotation of this key repeats the pod's manifest, environment included.
bool IsSecretAnnotation(std::string_view key);

// The differences between two trees (ToTree) of one message, one line for each value:
// `linux.resources.cpuset_cpus "" -> "1"`. Unset values are shown as protobuf's default. The outer
// `config` of a creation is left out of the names.
std::vector<std::string> Differences(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace resmgr::dump
