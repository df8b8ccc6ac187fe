// SPDX-License-Identifier: Apache-2.0
#include "webhook/testing/reviews.h"

#include <openssl/evp.h>

namespace resmgr::webhook {

namespace {

using nlohmann::json;

json Container(std::string_view name, json resources) {
  return {
      {"name", name},
      {"image", "registry.example.com/team/service:1.4.2"},
      {"command", {"/usr/bin/service", "--config", "/etc/service/config.yaml", "--verbose=2"}},
      {"ports", json::array({{{"name", "http"}, {"containerPort", 8080}, {"protocol", "TCP"}}})},
      {"env",
       {{{"name", "POD_NAME"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "metadata.name"}}}}}},
        {{"name", "REGION"}, {"value", "north-1"}}}},
      {"resources", std::move(resources)},
      {"volumeMounts",
       {{{"name", "config"}, {"mountPath", "/etc/service"}, {"readOnly", true}},
        {{"name", "token"},
         {"mountPath", "/var/run/secrets/kubernetes.io/serviceaccount"},
         {"readOnly", true}}}},
      {"livenessProbe",
       {{"httpGet", {{"path", "/livez"}, {"port", 8080}, {"scheme", "HTTP"}}},
        {"timeoutSeconds", 1},
        {"periodSeconds", 10},
        {"successThreshold", 1},
        {"failureThreshold", 3}}},
      {"terminationMessagePath", "/dev/termination-log"},
      {"terminationMessagePolicy", "File"},
      {"imagePullPolicy", "IfNotPresent"},
  };
}

json ManagedFields() {
  json fields = json::object();
  for (const char* name : {"migrate", "proxy", "server", "exporter"}) {
    fields[std::string("k:{\"name\":\"") + name + "\"}"] = {
        {".", json::object()},
        {"f:image", json::object()},
        {"f:resources",
         {{"f:limits", {{"f:cpu", json::object()}, {"f:memory", json::object()}}},
          {"f:requests", {{"f:cpu", json::object()}, {"f:memory", json::object()}}}}},
    };
  }
  return json::array({{{"manager", "kube-controller-manager"},
                       {"operation", "Update"},
                       {"apiVersion", "v1"},
                       {"time", "2026-01-02T03:04:05Z"},
                       {"fieldsType", "FieldsV1"},
                       {"fieldsV1", {{"f:spec", {{"f:containers", std::move(fields)}}}}}}});
}

}  // namespace

json EverydayPod() {
  const json small = {{"limits", {{"memory", "64Mi"}}}, {"requests", {{"cpu", "100m"}}}};
  const json large = {{"limits", {{"cpu", "2"}, {"memory", "4Gi"}, {"example.com/nic", "1"}}},
                      {"requests", {{"cpu", "2"}, {"memory", "4Gi"}, {"example.com/nic", "1"}}}};
  json sidecar = Container("proxy", small);
  sidecar["restartPolicy"] = "Always";
  return {
      {"kind", "Pod"},
      {"apiVersion", "v1"},
      {"metadata",
       {{"name", "server-7d9c5b8f6-x2x7k"},
        {"generateName", "server-7d9c5b8f6-"},
        {"namespace", "shop"},
        {"labels", {{"app", "server"}, {"pod-template-hash", "7d9c5b8f6"}}},
        {"annotations", {{"example.com/checksum", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"}}},
        {"managedFields", ManagedFields()}}},
      {"spec",
       {{"initContainers", json::array({Container("migrate", small), sidecar})},
        {"containers",
         json::array({Container("server", large), Container("exporter", json::object())})},
        {"volumes",
         json::array({{{"name", "config"}, {"configMap", {{"name", "server-config"}}}}})},
        {"restartPolicy", "Always"},
        {"serviceAccountName", "server"},
        {"tolerations", json::array({{{"key", "node.kubernetes.io/not-ready"},
                                      {"operator", "Exists"},
                                      {"effect", "NoExecute"},
                                      {"tolerationSeconds", 300}}})},
        {"priority", 0}}},
      {"status", json::object()},
  };
}

json ReviewOf(const json& pod, std::string_view operation, std::string_view version) {
  const json kind = {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}};
  const json resource = {{"group", ""}, {"version", "v1"}, {"resource", "pods"}};
  return {
      {"kind", "AdmissionReview"},
      {"apiVersion", std::string("admission.k8s.io/").append(version)},
      {"request",
       {{"uid", "705ab4f5-6393-11e8-b7cc-42010a800002"},
        {"kind", kind},
        {"resource", resource},
        {"requestKind", kind},
        {"requestResource", resource},
        {"namespace", "shop"},
        {"operation", operation},
        {"userInfo",
         {{"username", "system:serviceaccount:kube-system:replicaset-controller"},
          {"groups", {"system:serviceaccounts", "system:authenticated"}}}},
        {"object", pod},
        {"oldObject", operation == "UPDATE" ? pod : json()},
        {"dryRun", false},
        {"options", {{"kind", "CreateOptions"}, {"apiVersion", "meta.k8s.io/v1"}}}}},
  };
}

json PatchIn(const json& review) {
  const json& response = review.at("response");
  if (!response.contains("patch")) return json();
  const std::string text = response.at("patch").get<std::string>();
  std::string bytes(text.size() / 4 * 3, '\0');
  EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                  reinterpret_cast<const unsigned char*>(text.data()),
                  static_cast<int>(text.size()));
  // The decoder turns the padding into zero bytes.
  bytes.erase(bytes.find_last_not_of('\0') + 1);
  return json::parse(bytes);
}

}  // namespace resmgr::webhook
