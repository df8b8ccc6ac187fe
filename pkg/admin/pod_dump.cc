// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/pod_dump.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"

namespace resmgr {

StatusOr<OrderedJson> PodDump::Begin(std::string_view pod, std::chrono::seconds duration) {
  const std::vector<std::string_view> parts = Split(pod, '/');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty() || pod.size() > 512) {
    return InvalidArgument("\"{}\" is not NAMESPACE/POD", Printable(pod, 256));
  }
  if (duration < std::chrono::seconds(1) || duration > kLongest) {
    return InvalidArgument("a dump takes 1 to {} seconds", kLongest.count());
  }
  if (node_.dumper == nullptr) return FailedPrecondition("this daemon dumps no calls");
  if (!over_) return FailedPrecondition("another dump of a pod is under way");
  std::vector<std::string> ids;
  if (const ResourceManager* const manager = node_.host.manager()) {
    manager->snapshot().ForEachContainer([&](const Pod& its, const Container& container) {
      if (its.namespace_name != parts[0] || its.name != parts[1]) return;
      ids.emplace_back(its.id.value());
      ids.emplace_back(container.id.value());
    });
  }
  for (const SeenContainer& seen : node_.door.seen()) {
    if (seen.pod.namespace_name != parts[0] || seen.pod.name != parts[1]) continue;
    ids.emplace_back(seen.pod.id.value());
    ids.emplace_back(seen.container.id.value());
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  auto trace = std::make_shared<dump::PodTrace>(parts[0], parts[1], std::move(ids));
  RESMGR_RETURN_IF_ERROR(node_.dumper->Trace(trace));
  trace_ = std::move(trace);
  over_ = false;
  unread_ = false;
  end_ = node_.loop.After(duration, [this] { End(); });
  AwaitReader();
  return OrderedJson{{"trace", ++last_trace_}};
}

StatusOr<OrderedJson> PodDump::Next(uint64_t trace) {
  if (trace_ == nullptr || trace != last_trace_) return NotFound("that dump is over");
  dump::PodTrace::Piece piece = trace_->TakeText(kMostPiece);
  const bool over = over_ && piece.text.empty();
  if (over) trace_.reset();
  if (!over_) AwaitReader();
  return OrderedJson{{"text", piece.text},
                     {"lostLines", piece.lost_lines},
                     {"lostCalls", piece.lost_calls},
                     {"more", piece.more},
                     {"over", over},
                     {"unread", unread_}};
}

void PodDump::AwaitReader() {
  silence_ = node_.loop.After(kSilence, [this] {
    unread_ = true;
    End();
  });
}

void PodDump::Stop(uint64_t trace) {
  if (trace == last_trace_) End();
}

void PodDump::End() {
  if (std::exchange(over_, true)) return;
  end_.reset();
  silence_.reset();
  node_.dumper->Trace(nullptr).IgnoreError();
}

}  // namespace resmgr
