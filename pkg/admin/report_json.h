// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/audit/auditor.h"
#include "pkg/classes/class_worker.h"
#include "pkg/classes/host_classes.h"
#include "pkg/model/problem.h"
#include "pkg/node/problems_watch.h"

namespace resmgr {

// A fixed outside contract of `cri-resmgr-ctl audit -o json`:
//   {"checked" (containers that were compared), "drifted" (of these, other than was decided),
//    "changing" (left out, since a change was pending), "runtimeProblem" ("", or why
//    what the runtime reports was not compared), "containers": [{"container"
//    ("namespace/pod/name"), "id", "drifts": [{"where" ("cgroup", "effective", "runtime",
//    "affinity", "hierarchy"), "value","decided","actual", "why" ("", or the cause outside of the
//    container and what to do)}], "unread" ("", or why its cgroup could not be read),
//    "sentAgain"}]}, of containers that have drifted or could not be read
OrderedJson AuditJson(const AuditReport& report);

// Adds the files of classes whose value is not the wanted one, if there are any: "files":
//   [{"file", "wanted", "actual" ("" if it cannot be read), "unread" ("", or why), "repaired"}],
//   or "filesProblem": why they were not compared
void AddFiles(const StatusOr<std::vector<HostClasses::Audited>>& audited, OrderedJson& answer);

// A fixed outside contract of `cri-resmgr-ctl classes -o json`: a list of
//   {"kind","name","state":"active"|"inactive","reason","containers":["namespace/pod/container"]}
OrderedJson ClassesJson(const ClassReport& report);

// The classes of one container, for `explain`: a list of
//   {"kind","name","state","source","way","inForce","reason"}
OrderedJson ContainerClassesJson(const ClassReport& report, std::string_view id);

// The files of the host that have values of ours, and what they had before: {"file","before"}
OrderedJson ChangedFilesJson(const ClassReport& report);

// A fixed outside contract of `cri-resmgr-ctl status -o json`: a list of
//   {"kind","since" (RFC 3339),"message","objects":[],"next"}
OrderedJson ProblemsJson(const std::vector<Problem>& problems);

}  // namespace resmgr
