// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/sync_chunks.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace resmgr::nri {
namespace {

// The fields of SynchronizeRequest, as protobuf's wire has them.
constexpr char kPods = 1 << 3 | 2;
constexpr char kContainers = 2 << 3 | 2;
constexpr std::string_view kMore{"\x18\x01", 2};
// Of one object in its list: field and length. And of `more`.
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

SyncChunks::SyncChunks(api::SynchronizeRequest all, size_t most_bytes, TooLong too_long)
    : all_(std::move(all)), most_bytes_(most_bytes), too_long_(std::move(too_long)) {}

template <typename List>
bool SyncChunks::Take(const List& list, char field, int& at, std::string& bytes) const {
  for (; at < list.size(); ++at) {
    const auto& object = list.Get(at);
    const size_t size = object.ByteSizeLong();
    if (size + 2 * kFrame > most_bytes_) {
      too_long_(object.id(), size);
    } else if (bytes.size() + size + 2 * kFrame > most_bytes_) {
      return false;
    } else {
      AppendTo(bytes, field, object, size);
    }
  }
  return true;
}

std::optional<SyncChunks::Chunk> SyncChunks::Next() {
  if (over_) return std::nullopt;
  Chunk chunk;
  over_ = Take(all_.pods(), kPods, pods_, chunk.bytes) &&
          Take(all_.containers(), kContainers, containers_, chunk.bytes);
  chunk.more = !over_;
  if (chunk.more) chunk.bytes += kMore;
  return chunk;
}

}  // namespace resmgr::nri
