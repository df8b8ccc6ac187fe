// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "pkg/dump/dumped_call.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace resmgr::dump {

// A message as a JSON object: names as in the proto text, numbers for enums, base64 for bytes,
// nothing for what is not set. Fields that our proto text does not know show up in a list
// `unknown_fields`, by number and kind. Their contents, like every secret (secrets.h), only with
// `show_secrets`.
nlohmann::json ToTree(const google::protobuf::Message& message, bool show_secrets);

// The same for a payload as it came, decoded as a message of `type` (null: of no type that we
// know). Of a payload that was cut short shows what could still be read; of one that does not
// decode, its size.
nlohmann::json ToTree(const Payload& payload, const google::protobuf::Message* type,
                      bool show_secrets);

}  // namespace resmgr::dump
