// SPDX-License-Identifier: Apache-2.0
// How well and how fast policies place: `policy-bench [PART]`, the first two parts when nothing is
// said.
//
// quality: of the containers that would fit into one L3 group, NUMA node or package, the part that
// was placed in one; of the shared ones, the part whose whole cpuset is in one NUMA node; the part
// of pods that was refused; after all operations, the part of CPUs not granted exclusively that
// lies in L3 groups without any grant. `static` packs as the kubelet does.
#include <cstdio>
#include <string_view>

#include "test/bench/policy/node.h"

int main(int argc, char** argv) {
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!part.empty() && part != "times" && part != "quality" && part != "streams" &&
                   part != "claims" && part != "views" && part != "losses")) {
    std::fprintf(stderr, "usage: %s [times|quality|streams|claims|views|losses]\n", argv[0]);
    return 1;
  }
  if (part == "claims") return resmgr::test::MeasureClaims() ? 0 : 1;
  if (part == "views") {
    resmgr::test::MeasureViews();
    return 0;
  }
  if (part == "losses") {
    resmgr::test::MeasureLosses();
    return 0;
  }
  if (part.empty() || part == "times") resmgr::test::MeasureTimes();
  if (part.empty() || part == "quality") resmgr::test::MeasureQuality();
  if (part != "times") resmgr::test::MeasureStreams();
  return 0;
}
