// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include <google/protobuf/message.h>

#include "pkg/base/status.h"

namespace resmgr::nri {

// A message of 4 MiB may have two million empty mounts in it, which are hundreds of megabytes once
// they are decoded. So fields are counted on the wire, at any depth, before a peer's message is
// decoded: each occurrence of a field is one, and so is each byte of a packed list.

// Of an answer, or of a request about one pod or container.
inline constexpr size_t kMostFields = size_t{1} << 16;
// Of one piece of all pods and containers. One that is full has a field for each 16 bytes then;
// those of containers that exist are longer.
inline constexpr size_t kMostPieceFields = size_t{1} << 18;
// Of all pieces together.
inline constexpr size_t kMostInventoryFields = size_t{1} << 20;

// How many fields the message of this type has; `most + 1` where it has more or is not protobuf.
// Takes no memory, and no time for what is behind the first `most` fields.
size_t CountFields(std::string_view bytes, const google::protobuf::Descriptor& type, size_t most);

// Decodes what a peer has sent. ResourceExhausted: it has more than `most` fields. InvalidArgument:
// it is not protobuf.
Status DecodeMessage(std::string_view bytes, google::protobuf::Message& message,
                     size_t most = kMostFields);

}  // namespace resmgr::nri
