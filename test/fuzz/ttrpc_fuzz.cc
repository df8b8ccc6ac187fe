// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/ttrpc/envelope.h"
#include "pkg/ttrpc/frame.h"
#include "test/fuzz/checks.h"

namespace {

using resmgr::fuzz::Check;
using resmgr::ttrpc::Frame;
using resmgr::ttrpc::MemoryBudget;

// An envelope is the same after it is written and read again.
void CheckEnvelope(std::string_view bytes) {
  using resmgr::ttrpc::DecodeRequest;
  using resmgr::ttrpc::DecodeResponse;
  if (const auto request = DecodeRequest(bytes); request.ok()) {
    Check(request->metadata.size() <= resmgr::ttrpc::kMostMetadata);
    const std::string again = Encode(*request);
    const auto same = DecodeRequest(again);
    Check(same.ok() && same->service == request->service && same->method == request->method);
    Check(same->payload == request->payload && same->timeout == request->timeout);
    Check(same->metadata == request->metadata);
  }
  if (const auto response = DecodeResponse(bytes); response.ok()) {
    const std::string again = resmgr::ttrpc::EncodeResponse(std::string(*response));
    const auto same = DecodeResponse(again);
    Check(same.ok() && *same == *response);
  }
}

// Frames as "stream type:body" of bytes that arrive in pieces of this size.
std::vector<std::string> Read(std::string_view bytes, size_t step, MemoryBudget& budget) {
  std::vector<std::string> frames;
  resmgr::ttrpc::FrameReader reader(budget);
  for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
    std::string_view piece = bytes.substr(0, step);
    while (const std::optional<Frame> frame = reader.Next(piece)) {
      const auto& header = frame->header;
      Check(frame->skipped ? frame->body.empty() : frame->body.size() == header.length);
      frames.push_back(std::to_string(header.stream) + " " + std::to_string(header.type) +
                       (frame->skipped ? " skipped" : ":" + frame->body));
      CheckEnvelope(frame->body);
    }
    Check(piece.empty());
  }
  return frames;
}

}  // namespace

// The first byte is the size of the pieces in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  MemoryBudget budget;
  Check(Read(bytes, size_t{1} + data[0] % 32, budget) == Read(bytes, bytes.size(), budget));
  Check(budget.held() == 0);
  CheckEnvelope(bytes);
  return 0;
}
