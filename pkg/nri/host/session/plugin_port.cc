// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/plugin_port.h"

#include <cstdint>
#include <string_view>
#include <utility>

#include "pkg/base/wire.h"

namespace resmgr::nri {
namespace {

constexpr std::string_view kMore{"\x18\x01", 2};
// Bytes of an object's tag and length in its list; also bytes of the field `more`.
constexpr size_t kFrame = 8;

}  // namespace

void SyncWriter::Add(const api::PodSandbox& pod) {
  Append(api::SynchronizeRequest::kPodsFieldNumber, pod);
}

void SyncWriter::Add(const api::Container& container) {
  Append(api::SynchronizeRequest::kContainersFieldNumber, container);
}

template <typename Object>
void SyncWriter::Append(uint32_t field, const Object& object) {
  const size_t size = object.ByteSizeLong();
  if (size + 2 * kFrame > most_bytes_) {
    all_.left_out.push_back({.id = object.id(), .bytes = size});
    return;
  }
  if (bytes_.size() + size + 2 * kFrame > most_bytes_) {
    bytes_ += kMore;
    EndMessage();
  }
  FieldWriter writer(bytes_);
  writer.Header(field, size);
  object.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(writer.Extend(size)));
}

void SyncWriter::EndMessage() {
  all_.messages.push_back(std::make_shared<const std::string>(std::exchange(bytes_, {})));
}

SharedSyncMessages SyncWriter::Finish() {
  EndMessage();
  return std::make_shared<const SyncMessages>(std::move(all_));
}

}  // namespace resmgr::nri
