// SPDX-License-Identifier: Apache-2.0
#include "agent/cluster_access.h"

#include <fstream>
#include <random>

#include <absl/strings/escaping.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/sys/temp_dir.h"
#include "test/support/status_matchers.h"

namespace resmgr::agent {
namespace {

using test::Fails;
using test::Must;
using testing::AllOf;
using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::Pair;

// A kubeconfig with this cluster and user, in flow style or with lines of their own.
std::string Kubeconfig(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\npreferences: {}\ncurrent-context: here\n"
         "contexts:\n- {name: other, context: {cluster: x, user: x}}\n"
         "- {name: here, context: {cluster: c1, user: u1, namespace: n}}\n"
         "clusters:\n- name: c1\n  cluster: " +
         cluster + "\nusers:\n- name: u1\n  user: " + user + "\n";
}

StatusOr<ClusterAccess> Parse(const std::string& cluster, const std::string& user) {
  return ParseKubeconfig(Kubeconfig(cluster, user), "kc", "/etc/kube");
}

constexpr char kServer[] = "{server: 'https://api:6443/'}";

TEST(KubeconfigTest, ReadsServerAndToken) {
  const auto access = Must(Parse(kServer, "{token: abc}"));
  EXPECT_EQ(access.server, "https://api:6443");
  EXPECT_EQ(access.user.token, "abc");
  EXPECT_TRUE(access.ca.empty());
  EXPECT_FALSE(access.insecure);
}

TEST(KubeconfigTest, ServersMayBeAddressesWithAndWithoutAPort) {
  for (const char* server : {"https://[fd00::1]:6443", "https://[fd00::1]", "http://10.0.0.1",
                             "https://api.example.com:443/clusters/c1"}) {
    const auto access = Must(Parse(fmt::format("{{server: '{}'}}", server), "{}"));
    EXPECT_EQ(access.server, server);
  }
}

// Text behind a query or a fragment is not part of the path, and a password would be logged with
// the server's name.
TEST(KubeconfigTest, ServersHaveNoUserQueryOrFragment) {
  for (const char* server : {"https://u:p@api:6443", "https://api:6443?x=1", "https://api/#x"}) {
    const Status status = Parse(fmt::format("{{server: '{}'}}", server), "{}").status();
    EXPECT_THAT(status, Fails(StatusCode::kInvalidArgument, HasSubstr("without user, query")));
    EXPECT_THAT(std::string(Message(status)), Not(HasSubstr("u:p")));
  }
}

TEST(KubeconfigTest, ImpersonationIsRefusedWhole) {
  for (const char* user :
       {"{as: x}", "{as-uid: x}", "{as-groups: [x]}", "{as-user-extra: {a: [b]}}"}) {
    EXPECT_EQ(Parse(kServer, user).status().code(), StatusCode::kUnimplemented) << user;
  }
}

TEST(KubeconfigTest, DecodesDataAndPrefersItToFiles) {
  const auto access = Must(Parse(
      "{server: 'https://api', certificate-authority: ca.crt, certificate-authority-data: Q0E=}",
      "{client-certificate-data: Q0VSVA==, client-key-data: S0VZ}"));
  EXPECT_EQ(access.ca.data, "CA");
  EXPECT_EQ(access.ca.file, "");
  EXPECT_EQ(access.user.certificate.data, "CERT");
  EXPECT_EQ(access.user.key.data, "KEY");
}

TEST(KubeconfigTest, TakesRelativePathsFromItsOwnFolder) {
  const auto access =
      Must(Parse("{server: 'https://api', certificate-authority: ca.crt}",
                 "{client-certificate: ../pki/c.crt, client-key: /k/c.key, tokenFile: token}"));
  EXPECT_EQ(access.ca.file, "/etc/kube/ca.crt");
  EXPECT_EQ(access.user.certificate.file, "/etc/pki/c.crt");
  EXPECT_EQ(access.user.key.file, "/k/c.key");
  EXPECT_EQ(access.user.token_file, "/etc/kube/token");
}

TEST(KubeconfigTest, ReadsTheRestOfACluster) {
  const auto access = Must(Parse(
      "{server: 'https://10.0.0.1', insecure-skip-tls-verify: true, tls-server-name: api.local, "
      "proxy-url: 'http://proxy:3128'}",
      "{username: u, password: p}"));
  EXPECT_TRUE(access.insecure);
  EXPECT_EQ(access.tls_server_name, "api.local");
  EXPECT_EQ(access.proxy_url, "http://proxy:3128");
  EXPECT_EQ(access.user.username, "u");
  EXPECT_EQ(access.user.password, "p");
}

TEST(KubeconfigTest, ReadsAnExecPlugin) {
  const auto access = Must(Parse(
      kServer,
      "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./get-token, args: [a, '1'], "
      "env: [{name: N, value: V}], interactiveMode: IfAvailable, provideClusterInfo: true}}"));
  ASSERT_TRUE(access.user.exec.has_value());
  EXPECT_EQ(access.user.exec->command, "/etc/kube/get-token");
  EXPECT_THAT(access.user.exec->arguments, ElementsAre("a", "1"));
  EXPECT_THAT(access.user.exec->environment, ElementsAre(Pair("N", "V")));
  EXPECT_TRUE(access.user.exec->provide_cluster_info);
}

TEST(KubeconfigTest, LooksUpPluginsWithoutAPathInPath) {
  const auto access =
      Must(Parse(kServer, "{exec: {apiVersion: client.authentication.k8s.io/v1, command: aws}}"));
  EXPECT_EQ(access.user.exec->command, "aws");
}

TEST(KubeconfigTest, AcceptsJson) {
  const auto access = Must(ParseKubeconfig(
      R"({"current-context":"a","contexts":[{"name":"a","context":{"cluster":"c"}}],)"
      R"("clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:8080"}}]})",
      "kc", "/"));
  EXPECT_EQ(access.server, "http://127.0.0.1:8080");
}

TEST(KubeconfigTest, SaysWhereAClusterIsWrong) {
  const struct {
    const char* cluster;
    const char* message;
  } cases[] = {
      {"{}", "https://"},
      {"{server: 'ftp://x'}", "https://"},
      {"{server: 'https:///api'}", "https://"},
      {"{server: 'https://:6443'}", "https://"},
      {"{server: 'https://x:65536'}", "https://"},
      {"{server: 'https://x:'}", "https://"},
      {"{server: 'https://[fd00::1]:port'}", "https://"},
      {"{server: [1]}", "server"},
      {"[]", "must be a map"},
      {"{server: 'https://x', certificate-authority-data: '***'}", "not base64"},
      {"{server: 'https://x', insecure-skip-tls-verify: maybe}", "true or false"},
      {"{server: 'https://x', insecure-skip-tls-verify: true, certificate-authority: f}",
       "exclude each other"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Parse(c.cluster, "{}"),
                Fails(StatusCode::kInvalidArgument, AllOf(HasSubstr("kc:"), HasSubstr(c.message))))
        << c.cluster;
  }
}

TEST(KubeconfigTest, SaysWhereAUserIsWrong) {
  const struct {
    const char* user;
    const char* message;
  } cases[] = {
      {"{client-certificate-data: Q0E=}", "go together"},
      {"{client-key: f}", "go together"},
      {"{token: {a: b}}", "token"},
      {"{exec: {command: x}}", "apiVersion"},
      {"{exec: {apiVersion: client.authentication.k8s.io/v1}}", "command"},
      {"{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{value: v}]}}",
       "name"},
      {"{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}}",
       "interactiveMode"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Parse(kServer, c.user),
                Fails(StatusCode::kInvalidArgument, AllOf(HasSubstr("kc:"), HasSubstr(c.message))))
        << c.user;
  }
}

TEST(KubeconfigTest, RefusesWhatWouldMakeUsSomebodyElse) {
  for (const char* user : {"{as: admin, token: t}", "{auth-provider: {name: gcp}}",
                           "{as-groups: ['system:masters'], token: t}"}) {
    EXPECT_THAT(Parse(kServer, user),
                Fails(StatusCode::kUnimplemented, HasSubstr("not supported")));
  }
}

TEST(KubeconfigTest, NeedsAContextWithItsClusterAndUser) {
  const auto parse = [](const std::string& text) { return ParseKubeconfig(text, "kc", "/"); };
  EXPECT_THAT(parse(""), Fails(StatusCode::kInvalidArgument, HasSubstr("kc:")));
  EXPECT_THAT(parse("a: ["), Fails(StatusCode::kInvalidArgument, HasSubstr("kc:")));
  EXPECT_THAT(parse("{}"), Fails(StatusCode::kInvalidArgument, HasSubstr("current-context")));
  EXPECT_THAT(parse("current-context: a"),
              Fails(StatusCode::kInvalidArgument, HasSubstr("contexts")));
  EXPECT_THAT(parse("{current-context: a, contexts: [{name: b}]}"),
              Fails(StatusCode::kInvalidArgument, HasSubstr("\"a\"")));
  EXPECT_THAT(parse("{current-context: a, contexts: [{name: a, context: {cluster: c}}], "
                    "clusters: []}"),
              Fails(StatusCode::kInvalidArgument, HasSubstr("\"c\"")));
}

TEST(KubeconfigTest, KeepsSecretsOutOfMessages) {
  const auto access =
      Parse(kServer, "{client-key-data: 'c2VjcmV0!', client-certificate-data: Q0E=}");
  EXPECT_THAT(access, Fails(StatusCode::kInvalidArgument, Not(HasSubstr("c2VjcmV0"))));
}

TEST(KubeconfigTest, NamesAFileThatCannotBeRead) {
  EXPECT_THAT(LoadKubeconfig("/nonexistent/kc"),
              Fails(StatusCode::kInvalidArgument, HasSubstr("/nonexistent/kc")));
}

TEST(KubeconfigTest, ReadsAFile) {
  const TempDir directory;
  std::ofstream(directory.File("kc")) << Kubeconfig(kServer, "{tokenFile: t}");
  const auto access = Must(LoadKubeconfig(directory.File("kc")));
  EXPECT_EQ(access.user.token_file, directory.File("t"));
}

TEST(InClusterTest, UsesTheServiceAccount) {
  const auto access = Must(InClusterAccess("10.96.0.1", "443", kServiceAccountDirectory));
  EXPECT_EQ(access.server, "https://10.96.0.1:443");
  EXPECT_EQ(access.ca.file, "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
  EXPECT_EQ(access.user.token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
}

TEST(InClusterTest, BracketsAddressesOfIpVersion6) {
  EXPECT_EQ(InClusterAccess("fd00::1", "443", "/d")->server, "https://[fd00::1]:443");
}

TEST(InClusterTest, SaysWhatToDoOutsideACluster) {
  EXPECT_THAT(InClusterAccess("", "", "/d"),
              Fails(StatusCode::kInvalidArgument, HasSubstr("-kubeconfig")));
}

TEST(Base64Test, DecodesTheExamplesOfTheStandard) {
  EXPECT_THAT(DecodeBase64(""), Optional(Eq("")));
  EXPECT_THAT(DecodeBase64("Zg=="), Optional(Eq("f")));
  EXPECT_THAT(DecodeBase64("Zm8="), Optional(Eq("fo")));
  EXPECT_THAT(DecodeBase64("Zm9vYmFy"), Optional(Eq("foobar")));
}

TEST(Base64Test, SkipsWhiteSpace) {
  EXPECT_THAT(DecodeBase64("Zm9v\n  YmFy\r\n"), Optional(Eq("foobar")));
}

TEST(Base64Test, RefusesWhatIsNoBase64) {
  for (const char* text :
       {"Zg", "Zg=", "Z", "Zg===", "Zm9v!mFy", "=", "Zg==Zg==", "Zm-_", "Zg.."}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

TEST(Base64Test, DecodesAnyBytes) {
  std::mt19937 random(7);
  for (size_t size = 0; size < 100; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    EXPECT_THAT(DecodeBase64(absl::Base64Escape(bytes)), Optional(Eq(bytes)));
  }
}

}  // namespace
}  // namespace resmgr::agent
