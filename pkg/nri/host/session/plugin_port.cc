// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_port.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace resmgr::nri {
namespace {

// Tags of the fields of SynchronizeRequest.
constexpr char kPods = 1 << 3 | 2;
constexpr char kContainers = 2 << 3 | 2;
constexpr std::string_view kMore{"\x18\x01", 2};
// Bytes of an object's tag and length in its list; also bytes of the field `more`.
constexpr size_t kFrame = 8;

void AppendTo(std::string& bytes, char field, const google::protobuf::MessageLite& object,
              size_t size) {
  bytes.push_back(field);
  size_t rest = size;
  for (; rest > 0x7f; rest >>= 7)
    bytes.push_back(static_cast<char>((rest & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(rest));
  const size_t at = bytes.size();
  bytes.resize(at + size);
  object.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes.data() + at));
}

}  // namespace

void SyncWriter::Add(const api::PodSandbox& pod) {
  Append(kPods, pod);
}

void SyncWriter::Add(const api::Container& container) {
  Append(kContainers, container);
}

template <typename Object>
void SyncWriter::Append(char field, const Object& object) {
  const size_t size = object.ByteSizeLong();
  if (size + 2 * kFrame > most_bytes_) {
    all_.left_out.push_back({.id = object.id(), .bytes = size});
    return;
  }
  if (bytes_.size() + size + 2 * kFrame > most_bytes_) {
    bytes_ += kMore;
    EndMessage();
  }
  AppendTo(bytes_, field, object, size);
}

void SyncWriter::EndMessage() {
  all_.messages.push_back(std::make_shared<const std::string>(std::exchange(bytes_, {})));
}

SharedSyncMessages SyncWriter::Finish() {
  EndMessage();
  return std::make_shared<const SyncMessages>(std::move(all_));
}

}  // namespace resmgr::nri
