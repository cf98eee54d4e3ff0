import java.io.File;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** HDFS with one data node, on loopback, until the end of its input. It says the ports of RPC and of WebHDFS. */
class HdfsServer {
    public static void main(String[] args) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set("dfs.namenode.http-address", "127.0.0.1:0");
        MiniDFSCluster cluster =
            new MiniDFSCluster.Builder(configuration, new File(args[0])).numDataNodes(1).build();
        cluster.waitActive();
        InetSocketAddress web = cluster.getNameNode().getHttpAddress();
        System.out.println("ports " + cluster.getNameNodePort() + " " + web.getPort());
        while (System.in.read() >= 0) {}
        System.exit(0);
    }
}
