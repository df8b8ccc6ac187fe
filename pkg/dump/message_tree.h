// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "pkg/dump/dumped_call.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace resmgr::dump {

// A message as a JSON object: names as in the proto text, numbers for enums, base64 for bytes,
// without unset fields. Fields that our proto text does not have are in a list `unknown_fields`, by
// number and kind. Their contents, like every secret (secrets.h), are shown only with
// `show_secrets`.
nlohmann::json ToTree(const google::protobuf::Message& message, bool show_secrets);

// The same for a payload, decoded as a message of `type` (null: unknown). Shows the readable part
// of a truncated payload; for a malformed one, its size.
nlohmann::json ToTree(const Payload& payload, const google::protobuf::Message* type,
                      bool show_secrets);

}  // namespace resmgr::dump
