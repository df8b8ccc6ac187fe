// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include <google/protobuf/message.h>

#include "pkg/base/status.h"

namespace resmgr::nri {

// Limits the fields of peers' messages. A message of 4 MiB may have two million empty mounts in it,
// which take hundreds of megabytes once they are decoded. Therefore fields are counted in the
// encoded message, at any depth, before it is decoded: each occurrence of a field is one, and so is
// each byte of a packed list.

// Fields of an answer, or of a request about one pod or container.
inline constexpr size_t kMostFields = size_t{1} << 16;
// Fields of one piece of the list of all pods and containers. A full piece may have a field for
// each 16 bytes; real containers have longer fields.
inline constexpr size_t kMostPieceFields = size_t{1} << 18;
// Fields of all pieces together.
inline constexpr size_t kMostInventoryFields = size_t{1} << 20;

// The number of fields of a message of this type; `most + 1` if it has more or is not protobuf.
// Takes no memory, and no time for the fields after the first `most`.
size_t CountFields(std::string_view bytes, const google::protobuf::Descriptor& type, size_t most);

// Decodes a peer's message. kResourceExhausted: it has more than `most` fields. kInvalidArgument:
// it is not protobuf.
Status DecodeMessage(std::string_view bytes, google::protobuf::Message& message,
                     size_t most = kMostFields);

}  // namespace resmgr::nri
