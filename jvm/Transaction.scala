/** One run of a query as it writes: all records of a batch in one transaction, with the token that names the batch.
  *
  * Stores come first, in the order they were declared, and each knows which batch it has: what was committed to them is
  * not written again if the batch comes again. So the token, written last, says that the batch is everywhere.
  *
  * Driver and tasks share the object, so tasks must run inside the driver (`local[n]`). A commit whose outcome is not
  * known is a failed batch: the next run finds the token, or does not, and drops the batch's rows or writes them. */
package headrace

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.security.MessageDigest
import java.time.Duration
import java.util.HexFormat
import java.util.concurrent.{ConcurrentHashMap, ExecutionException}
import java.util.concurrent.atomic.AtomicReference

import scala.jdk.CollectionConverters._
import scala.util.Try

import org.apache.kafka.clients.producer.{Callback, KafkaProducer, RecordMetadata}
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.errors._
import org.apache.kafka.common.serialization.ByteArraySerializer
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.write.LogicalWriteInfo
import org.apache.spark.sql.streaming.StreamingQueryListener.QueryTerminatedEvent

class Transaction(spec: SinkSpec, query: String, val run: String, val files: Option[StoreFiles]) {
  import Transaction._

  private val commits = new Commits(spec.commits, spec.kafka)
  private val failure = new AtomicReference[Throwable]
  private val sent: Callback = (_: RecordMetadata, error: Exception) => if (error != null) failure.compareAndSet(null, error)
  private val plainly = LogSink.batching ++ spec.kafka ++ LogSink.safe
  // `query` is Spark's name for a checkpoint: each counts its own batches. The flow's own key says who has it now.
  private val owner = spec.id
  private val written = s"${spec.id}/$query"
  private val tried = s"$written/$AtMostOnce"

  private var producer: KafkaProducer[Array[Byte], Array[Byte]] = _
  private var plain: SharedProducer = _ // of weaker guarantees
  private var committed = Never         // the last batch whose token was found, or written here
  private var claimed = Never           // the last batch whose at-most-once rows may have been sent
  private var batch = Never
  @volatile private var begun = false   // the batch has a transaction: one without rows needs none
  @volatile private var claims: Option[Boolean] = None // may this batch send its at-most-once rows?

  // -- a batch

  /** Begins a batch, once for all its tasks; whether its rows are wanted. They are not if it was committed before. */
  def open(number: Long): Boolean = synchronized {
    guarded {
      if (producer == null) connect()
      if (batch != number) {
        batch = number
        begun = false
        claims = None
      }
      committed < number
    }
  }

  /** Taking the flow's transactional id ends the transaction of whoever had it, and fences him. What he committed is
    * read after that, so nothing can follow. The first token of a run says who has the flow now. */
  private def connect(): Unit = {
    val config = plainly ++ Map("transactional.id" -> spec.id, "transaction.timeout.ms" -> Timeout.toMillis.toString)
    val bytes = new ByteArraySerializer
    val opened = new KafkaProducer(config.map { case (k, v) => k -> (v: Object) }.asJava, bytes, bytes)
    try {
      opened.initTransactions()
      val tokens = commits.read()
      // Long after this run was started, maybe: the first batch of a flow without records comes late.
      if (spec.known.exists(!_.contains(tokens.get(owner).fold("")(_.run)))) throw taken
      tokens.get(written).foreach { last =>
        committed = last.batch
        // Its batches would be taken for those that were written, and hold other rows.
        if (committed > spec.planned) throw new LogTrouble("state-behind",
          s"the state of ${spec.id} ends with batch ${spec.planned}, and batch $committed was written")
        if (last.plan.nonEmpty && plan(committed).exists(_ != last.plan)) throw new LogTrouble("state-behind",
          s"the state of ${spec.id} has a batch $committed that is not the one that was written")
      }
      claimed = tokens.get(tried).map(_.batch).getOrElse(Never)
      opened.beginTransaction()
      opened.send(commits.record(owner, Token(committed, run)), sent)
      opened.commitTransaction()
      producer = opened
    } finally if (producer == null) opened.close(Duration.ZERO)
  }

  def send(row: InternalRow): Unit = {
    if (failure.get != null) throw trouble(failure.get)
    val record = LogSink.record(row)
    guarded(if (spec.weaker.isEmpty) within.send(record, sent) else spec.weaker.get(record.topic) match {
      case None => within.send(record, sent)
      case Some(AtLeastOnce) => outside.send(record, sent)
      case Some(_) => if (mayTry) outside.send(record, sent)
    })
  }

  private def within: KafkaProducer[Array[Byte], Array[Byte]] = {
    if (!begun) synchronized(if (!begun) {
      Failpoint.reach("before-rows", batch)(())
      producer.beginTransaction()
      begun = true
    })
    producer
  }

  private def outside: KafkaProducer[Array[Byte], Array[Byte]] = synchronized {
    if (plain == null) plain = Producers.take(plainly)
    plain.kafka
  }

  /** At-most-once rows leave only after it is on record that they were tried: then nobody tries them again. */
  private def mayTry: Boolean = claims.getOrElse(synchronized {
    if (claims.isEmpty) {
      val first = claimed < batch
      if (first) {
        outside.send(commits.record(tried, Token(batch, run))).get()
        claimed = batch
      }
      claims = Some(first)
    }
    claims.get
  })

  /** The end of a batch: what its tasks staged goes to the stores; then everything they sent, and the token, or nothing. */
  def commit(number: Long, staged: Seq[(Int, Seq[String])]): Unit = if (open(number)) synchronized(guarded {
    flush() // what the broker refuses is refused before a store has the batch
    if (failure.get != null) throw trouble(failure.get)
    if (staged.nonEmpty) Failpoint.reach("before-stores", number)(())
    for ((store, paths) <- staged) {
      StoreCommits.commit(spec.staged, written, number, store, paths)
      Failpoint.reach(s"after-store/${spec.stores(store)}", number)(())
    }
    if (begun || staged.nonEmpty) {
      within.send(commits.record(written, Token(number, run, plan(number).getOrElse(""))), sent)
      Failpoint.reach("after-token", number)(producer.flush())
      producer.commitTransaction()
      committed = number
      Failpoint.reach("after-commit", number)(())
    }
    files.foreach(_.remove(number))
    if (staged.nonEmpty) StoreCommits.tidy(spec.staged)
  })

  /** A mark of what a batch was planned to read, and when: no two plans have the same. None if Spark has removed it. */
  private def plan(number: Long): Option[String] = {
    val file = Path.of(spec.plans, number.toString)
    Option.when(Files.exists(file)) {
      val source = Files.readAllLines(file).asScala.last // the lines before it are settings, which a rescale changes
      HexFormat.of.formatHex(MessageDigest.getInstance("SHA-256").digest(source.getBytes(UTF_8)), 0, 8)
    }
  }

  /** A task failed. Were it run again, the transaction would hold its rows twice. */
  def spoil(): Unit = failure.compareAndSet(null, new KafkaException("a task of the batch failed"))

  def flush(): Unit = synchronized {
    if (plain != null) plain.kafka.flush()
    if (begun) producer.flush()
  }

  /** Ends an open transaction too: the client aborts it, or else the next to take the flow does. */
  def close(): Unit = synchronized {
    val interrupted = Thread.interrupted() // a stopped query interrupts its thread, and close fails in such a one
    try {
      if (plain != null) Producers.give(plainly, plain, broken = failure.get != null)
      if (producer != null) producer.close(Duration.ofSeconds(5))
    } finally {
      plain = null
      if (interrupted) Thread.currentThread.interrupt()
    }
  }

  // -- trouble

  private def guarded[T](body: => T): T =
    try body
    catch {
      case e: InterruptException => throw new InterruptedException(e.getMessage)
      case e: KafkaException => throw trouble(Option(failure.get).getOrElse(e))
      case e: ExecutionException => throw trouble(e.getCause)
    }

  private def trouble(e: Throwable): Throwable = LogTrouble.causes(e).collectFirst {
    case _: ProducerFencedException | _: InvalidProducerEpochException | _: InvalidTxnStateException => lost(e)
    case large: RecordTooLargeException => LogSink.trouble(large)
  }.getOrElse(LogSink.trouble(e))

  private def taken = new LogTrouble("fenced", s"another driver has taken over ${spec.id}")

  /** The broker takes nothing more from this producer: someone else has the flow, or the transaction was too slow. Or the
    * broker does not know of the transaction: seen once, of the first of a flow, on a busy machine. */
  private def lost(e: Throwable): LogTrouble = {
    val another = Try(commits.read()).toOption.flatMap(_.get(owner)).exists(_.run != run)
    val unknown = LogTrouble.causes(e).exists(_.isInstanceOf[InvalidTxnStateException])
    val why = if (unknown) "it does not know of it any more" else s"it was open for more than ${Timeout.toMinutes} minutes"
    val found =
      if (another) taken else new LogTrouble("transaction-expired", s"the broker gave up a transaction of ${spec.id}: $why")
    found.initCause(e)
    found
  }
}

object Transaction {
  /** From the first row of a batch to its commit. Readers of a topic wait so long for a driver that died and never came
    * back; brokers allow up to 15 minutes. */
  private val Timeout = Duration.ofMinutes(10)
  private val Never = -1L
  private val AtLeastOnce = "at-least-once"
  private val AtMostOnce = "at-most-once"
}

/** The transactions of this JVM's queries, by run; tasks find theirs here, and it ends with the query. */
object Transactions {
  private val Run = "spark.jobGroup.id" // set by Spark's streaming engine to the id of the run
  private val open = new ConcurrentHashMap[String, Transaction]
  private var watched: SparkContext = _

  /** Of the query that plans a batch in this thread. */
  def here(spec: SinkSpec, info: LogicalWriteInfo): Transaction = {
    val session = SparkSession.active
    watch(session.sparkContext)
    open.computeIfAbsent(session.sparkContext.getLocalProperty(Run), run => {
      val files = Option.when(spec.stores.nonEmpty)(new StoreFiles(spec.staged, info.schema, session))
      new Transaction(spec, info.queryId, run, files)
    })
  }

  def of(run: String): Transaction = open.get(run)

  private def watch(context: SparkContext): Unit = synchronized(if (watched ne context) {
    watched = context
    context.addSparkListener(new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
        case ended: QueryTerminatedEvent => Option(open.remove(ended.runId.toString)).foreach(_.close())
        case _ =>
      }
    })
  })
}
