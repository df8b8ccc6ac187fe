// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/history_json.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

OrderedJson EntryJson(const History::Entry& entry) {
  const Place& place = *entry.place;
  const std::string more =
      entry.containers > 1 ? fmt::format(" and {} more", entry.containers - 1) : "";
  return {
      {"time", Rfc3339(entry.time)},
      {"event", ToString(entry.event)},
      {"container", entry.container + more},
      {"cpus", place.cpus ? place.cpus->ToString() : ""},
      {"mems", place.mems ? place.mems->ToString() : ""},
      {"exclusive", place.exclusive.ToString()},
      {"reason", *entry.reason},
      {"error", entry.error},
  };
}

bool IsChosen(const History::Entry& entry, const Snapshot& snapshot, std::string_view what,
              const ContainerChoice& choice, NameMatch match) {
  if (const Pod* const pod = snapshot.FindPod(entry.pod)) {
    return choice.Includes(*pod) && (what.empty() || NamesFull(entry.container, what, match));
  }
  const bool of_namespace =
      choice.namespace_name.empty() || entry.container.starts_with(choice.namespace_name + '/');
  return of_namespace && choice.labels.empty() && NamesFull(entry.container, what, match);
}

// The reason may end with any text, so the time has a clause of its own.
std::string RefusedText(const History::Entry& entry) {
  return fmt::format("{}; refused at {}", entry.error, Rfc3339(entry.time));
}

OrderedJson RefusedJson(const History::Entry& entry) {
  const std::vector<std::string_view> parts = Split(entry.container, '/');
  OrderedJson object = {
      {"id", ""},
      {"pod", parts[1]},
      {"namespace", parts[0]},
      {"name", parts[2]},
      {"state", "refused"},
      {"cpus", ""},
      {"mems", ""},
      {"exclusive", ""},
      {"pool", ""},
      {"reason", entry.error},
      {"settled", false},
      {"hints", OrderedJson::array()},
      {"candidates", OrderedJson::array()},
      {"refused", RefusedText(entry)},
  };
  if (entry.asked == nullptr) return object;
  const Requirements& needs = entry.asked->requirements;
  object["qos"] = ToString(entry.asked->qos);
  object["request"] = needs.cpu_request.value;
  object["limit"] = needs.cpu_limit.value;
  object["memoryRequest"] = needs.memory_request.value;
  object["memoryLimit"] = needs.memory_limit.value;
  return object;
}

bool Describes(const OrderedJson& object, const std::string& full) {
  return fmt::format("{}/{}/{}", object.value("namespace", ""), object.value("pod", ""),
                     object.value("name", "")) == full;
}

// The attempt that lives, or else the first one.
OrderedJson::iterator FindListed(OrderedJson& list, const std::string& full) {
  const auto lives = [&full](const OrderedJson& object) {
    return Describes(object, full) &&
           object.value("state", "") != ToString(ContainerState::kExited);
  };
  const auto living = std::find_if(list.begin(), list.end(), lives);
  if (living != list.end()) return living;
  return std::find_if(list.begin(), list.end(),
                      [&full](const OrderedJson& object) { return Describes(object, full); });
}

// Whether a refusal from before the event is still one after it: a move, a failed update or a
// restart of the daemon undoes none.
bool LeavesRefusals(History::Event event) {
  return event == History::Event::kMoved || event == History::Event::kFailed ||
         event == History::Event::kAdopted || event == History::Event::kWritten;
}

}  // namespace

OrderedJson HistoryJson(const History& history, size_t most) {
  OrderedJson list = OrderedJson::array();
  for (const History::Entry* const entry : history.Last(most))
    list.push_back(EntryJson(*entry));
  return list;
}

StatusOr<OrderedJson> WithRefusals(StatusOr<OrderedJson> explained, const History& history,
                                   const Snapshot& snapshot, std::string_view what,
                                   const ContainerChoice& choice, NameMatch match) {
  OrderedJson list = explained.ok() ? *explained : OrderedJson::array();
  std::vector<const History::Entry*> entries = history.Last(history.capacity());
  std::reverse(entries.begin(), entries.end());
  std::set<std::string_view> seen;
  std::set<std::string_view> adopted;
  for (const History::Entry* const entry : entries) {
    if (entry->event == History::Event::kAdopted) adopted.insert(entry->container);
    if (LeavesRefusals(entry->event)) continue;
    if (!seen.insert(entry->container).second) continue;
    if (entry->event != History::Event::kRefused) continue;
    // A creation without a reason of its own was refused, and succeeded while no daemon ran.
    if (entry->reason->empty() && adopted.contains(entry->container)) continue;
    if (const auto known = FindListed(list, entry->container); known != list.end()) {
      (*known)["refused"] =
          (entry->reason->empty() ? "" : *entry->reason + ": ") + RefusedText(*entry);
    } else if (IsChosen(*entry, snapshot, what, choice, match)) {
      list.push_back(RefusedJson(*entry));
    }
  }
  if (list.empty()) return explained;
  return list;
}

}  // namespace resmgr
