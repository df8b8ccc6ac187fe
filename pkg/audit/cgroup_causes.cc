// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_causes.h"

#include <memory>
#include <utility>

#include "pkg/sys/cgroups.h"

namespace resmgr {
namespace {

constexpr std::chrono::milliseconds kLookPatience{500};

void AddCause(std::string& text, const std::string& more) {
  if (!more.empty()) text += (text.empty() ? "" : "; ") + more;
}

// The cgroups of one container in the hierarchy of the cpusets.
struct Paths {
  std::string above;  // its pod's, "/kubepods/pod1"
  std::string own{};  // "": it has none
};

Paths PathsOf(const CgroupReader& cgroups, const RefusalCauses::Subject& subject) {
  if (const auto found = cgroups.FindCpuset(subject.cgroup_parent, subject.id.value());
      found.ok()) {
    std::string own = found->InHierarchy();
    std::string above = own.substr(0, own.rfind('/'));
    return {.above = std::move(above), .own = std::move(own)};
  }
  std::string above = SlicePath(subject.cgroup_parent);
  if (!above.starts_with('/')) above.insert(0, 1, '/');
  return {.above = std::move(above)};
}

}  // namespace

std::string CauseOfRefusal(const CgroupReader& cgroups, CpusetLimits& limits,
                           const RefusalCauses::Subject& subject) {
  if (!CanBeCgroup(subject.cgroup_parent)) return "";
  const Paths paths = PathsOf(cgroups, subject);
  if (subject.cgroup_parent.empty() && paths.own.empty()) return "";
  std::string cause = limits.WhyNone(paths.own.empty() ? paths.above : paths.own);
  if (subject.cpus) {
    AddCause(cause, limits.WhyNot(paths.above, *subject.cpus - limits.AllowedCpus(paths.above)));
    AddCause(cause, limits.Conflicts(paths.above, paths.own, *subject.cpus));
  }
  if (subject.mems)
    AddCause(cause, limits.WhyNot(paths.above, *subject.mems - limits.AllowedMems(paths.above)));
  return cause;
}

CgroupCauses::CgroupCauses(EventLoop& loop, CgroupReader cgroups)
    : looks_(
          loop, "cgroup-causes",
          [cgroups = std::move(cgroups)]() -> Looks::LookAt {
            return
                [cgroups, limits = std::make_shared<CpusetLimits>(cgroups.Limits())](
                    const Subject& subject) { return CauseOfRefusal(cgroups, *limits, subject); };
          },
          kLookPatience) {}

CgroupCauses::CgroupCauses(EventLoop& loop, Looks::LookAt look, std::chrono::milliseconds patience)
    : looks_(
          loop, "cgroup-causes", [look = std::move(look)] { return look; }, patience) {}

void CgroupCauses::Find(Subject subject, std::function<void(std::string cause)> done) {
  looks_.Look({std::move(subject)}, [done = std::move(done)](std::vector<std::string> found) {
    done(found.empty() ? "" : std::move(found.front()));
  });
}

}  // namespace resmgr
