// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/inflater.h"

#include <algorithm>

#include <zlib.h>

#include "pkg/h2/memory.h"

namespace resmgr {

namespace {

constexpr size_t kFirstPiece = size_t{16} * 1024;
// An empty member costs as much time as this many bytes.
constexpr size_t kMemberCost = 4096;

}  // namespace

Inflater::Inflater(std::string_view input, size_t room, size_t limit)
    : input_(input), most_(room + limit), stream_(std::make_unique<z_stream>()) {
  constexpr int kGzipOnly = 15 + 16;
  h2::Memory::Add(kZlibMemory);
  *stream_ = {};
  started_ = inflateInit2(stream_.get(), kGzipOnly) == Z_OK;
  output_.Reserve(room + kFirstPiece, most_ + 1);
  output_.Count(room);
}

Inflater::~Inflater() {
  h2::Memory::Sub(kZlibMemory);
  if (started_) inflateEnd(stream_.get());
}

StatusOr<bool> Inflater::Step(size_t most) {
  if (!started_) return Internal("zlib cannot start");
  for (size_t left = most; left > 0;) {
    // One byte beyond the limit shows that there is more.
    output_.Reserve(output_.size() + 1, most_ + 1);
    const size_t room = std::min(output_.capacity() - output_.size(), left);
    const size_t offered = std::min(input_.size(), left);
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    stream_->avail_in = static_cast<uInt>(offered);
    stream_->next_out = output_.end();
    stream_->avail_out = static_cast<uInt>(room);
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    const size_t taken = offered - stream_->avail_in;
    const size_t made = room - stream_->avail_out;
    input_.remove_prefix(taken);
    output_.Count(made);
    if (output_.size() > most_) {
      return ResourceExhausted("the message is too long when decompressed");
    }
    size_t cost = std::max(taken, made);
    if (code == Z_STREAM_END) {
      if (input_.empty()) return true;
      if (inflateReset(stream_.get()) != Z_OK) return Internal("zlib failed");
      cost += kMemberCost;
    } else if (code != Z_OK || cost == 0) {
      return InvalidArgument("the message is not valid gzip data");
    }
    left -= std::min(left, cost);
  }
  return false;
}

}  // namespace resmgr
