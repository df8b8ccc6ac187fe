// SPDX-License-Identifier: Apache-2.0
// What observers are told.
#include "pkg/resmgr/resource_manager_impl.h"

namespace resmgr {
namespace {

// `others`: there are containers whose end would free something.
std::string_view Remedy(const Status& why, bool others) {
  switch (why.code()) {
    case StatusCode::kResourceExhausted:
      if (!others) {
        return "no other container has any of it: lower its request, or use a larger node";
      }
      return "it fits when others have ended, or on another node";
    case StatusCode::kInvalidArgument:
      return "change what its pod asks for";
    case StatusCode::kFailedPrecondition:
      return "another try may find them given up, and policy.StartFailurePolicy decides what "
             "happens";
    case StatusCode::kUnavailable:
      return "try again when the runtime is back";
    default:
      return "this is a fault of cri-resmgr";
  }
}

// A larger machine might have what is missing.
bool IsForRoom(const Status& why) {
  return why.code() == StatusCode::kResourceExhausted || why.code() == StatusCode::kInvalidArgument;
}

}  // namespace

Observer::Act ResourceManager::Impl::ActOn(const ContainerRecord& record, std::string_view why,
                                           const Placement& from) const {
  return {.policy = *policy_,
          .snapshot = store_.all(),
          .pod = record.pod->pod,
          .container = record.container,
          .why = why,
          .from = Place::Of(from),
          .others = decider_.shifts()};
}

void ResourceManager::Impl::ReportMoves(std::span<const Shift> shifts, std::string_view why) {
  for (const Shift& shift : shifts) {
    const ContainerRecord* const record = store_.Find(shift.first);
    if (record == nullptr) continue;
    observers_.OnMoved({.policy = *policy_,
                        .snapshot = store_.all(),
                        .pod = record->pod->pod,
                        .container = record->container,
                        .why = why,
                        .from = shift.from},
                       shift);
  }
}

Status ResourceManager::Impl::Refuse(const ContainerRecord& record, std::string_view what,
                                     const Status& why) {
  observers_.OnRefused({.policy = *policy_,
                        .snapshot = store_.all(),
                        .pod = record.pod->pod,
                        .container = record.container,
                        .why = what},
                       why);
  return AsRefusal(record, why);
}

// `kubectl describe pod` shows it among messages of other components: so it names cri-resmgr, the
// shortage and the remedy.
Status ResourceManager::Impl::AsRefusal(const ContainerRecord& record, const Status& why) const {
  const std::string name = FullName(record.pod->pod, record.container.name);
  bool others = false;
  store_.all().ForEachContainer([&](const Pod&, const Container& container) {
    others = others ||
             (container.key != record.container.key && container.state != ContainerState::kExited);
  });
  return MakeStatus(
      why.code(),
      fmt::format("cri-resmgr ({}): {}{}; container {}: {}", policy_->name(), Message(why),
                  IsForRoom(why) ? OfflineNote() : "", name, Remedy(why, others)));
}

}  // namespace resmgr
