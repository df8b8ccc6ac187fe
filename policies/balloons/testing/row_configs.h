// SPDX-License-Identifier: Apache-2.0
#pragma once

// Configurations of acceptance rows that run both on a model of a machine and with real pods on an
// emulated one; named by the end-to-end tests of nri-plugins' balloons.
namespace resmgr::test {

inline constexpr char kTest01[] = R"(
availableResources: {cpu: "cpuset:1-15"}
reservedResources: {cpu: "1"}
balloonTypes:
- {name: two-cpu, minCPUs: 2, maxCPUs: 2, preferNewBalloons: true}
- {name: three-cpu, minCPUs: 3, allocatorPriority: normal, namespaces: [three], preferSpreadingPods: true}
- {name: four-cpu, minCPUs: 4, maxCPUs: 8, minBalloons: 1, allocatorPriority: low}
- {name: five-cpu, maxCPUs: 5, allocatorPriority: none, preferNewBalloons: true, preferSpreadingPods: true}
)";

inline constexpr char kTest03[] = R"(
reservedResources: {cpu: "cpuset:0-2"}
reservedPoolNamespaces: ["monitor-*", "*-log*"]
PrivilegedNamespaces: ["*"]
balloonTypes:
- {name: reserved, minCPUs: 1, namespaces: [my-exact-name]}
- {name: default, minCPUs: 1}
- {name: full-core, minCPUs: 2, maxCPUs: 2, minBalloons: 2}
)";

inline constexpr char kTest04[] = R"(
reservedResources: {cpu: "1"}
balloonTypes:
- name: grouped
  minCPUs: 2
  preferNewBalloons: true
  groupBy: "${pod/namespace}-${pod/labels/balloon-instance}"
  matchExpressions: [{key: pod/labels/balloon-instance, operator: Exists}]
- {name: default, groupBy: "ns=$pod/namespace", preferNewBalloons: true}
)";

inline constexpr char kTest10[] = R"(
reservedResources: {cpu: "1"}
allocatorTopologyBalancing: true
preferSpreadOnPhysicalCores: true
balloonTypes:
- {name: policydefaults, minCPUs: 2, minBalloons: 1}
- {name: topo1cores0, minCPUs: 2, minBalloons: 1, preferSpreadOnPhysicalCores: false}
- {name: topo0cores1, minCPUs: 2, minBalloons: 1, allocatorTopologyBalancing: false}
- {name: topo0cores0, minCPUs: 2, minBalloons: 1, allocatorTopologyBalancing: false, preferSpreadOnPhysicalCores: false}
- {name: device-node2, preferNewBalloons: true, preferCloseToDevices: [/sys/devices/system/node/node2]}
)";

inline constexpr char kTest11[] = R"(
reservedResources: {cpu: "1"}
preserve: {matchExpressions: [{key: name, operator: In, values: [keep0, keep1]}]}
balloonTypes:
- name: precious
  minCPUs: 2
  matchExpressions:
  - {key: pod/labels/app.kubernetes.io/component, operator: Equals, values: [precious]}
)";

inline constexpr char kTest23[] = R"(
availableResources: {cpu: "exclude-cpuset:0-1,4-5,8-9,12-13"}
reservedResources: {cpu: "exclude-cpuset:4-15"}
reservedPoolNamespaces: [mine]
)";

// A balloon of each package is made of those of its nodes.
inline constexpr char kPackagesOfNodes[] = R"(
balloonTypes:
- {name: node0, preferCloseToDevices: [/sys/devices/system/node/node0]}
- {name: node1, preferCloseToDevices: [/sys/devices/system/node/node1]}
- {name: node2, preferCloseToDevices: [/sys/devices/system/node/node2]}
- {name: node3, preferCloseToDevices: [/sys/devices/system/node/node3]}
- {name: pkg0, components: [{balloonType: node0}, {balloonType: node1}]}
- {name: pkg1, components: [{balloonType: node2}, {balloonType: node3}]}
- name: any
  preferNewBalloons: true
  componentCreation: balance-balloons
  components: [{balloonType: pkg0}, {balloonType: pkg1}]
)";

}  // namespace resmgr::test
