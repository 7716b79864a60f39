/*
 * Change of keys between two ends of one association, secure/src/guard.rs at both. Key messages
 * are reliable and in order (stream 0, PPID 4242), in records of the epoch before.
 *
 * Either end may begin, both at once too. -DSTARTS=N: so often in all. -DCLAIM=...
 */
#define OPENS 1 /* every record is opened by keys of the same handshake */
#define STALL 2 /* when all has arrived both ends seal with keys of the same handshake */
#define WITNESS 3 /* keys never change (violated) */
#ifndef CLAIM
#define CLAIM OPENS
#endif
#ifndef STARTS
#define STARTS 4
#endif

mtype = { HELLO, FLIGHT, FINISHED, ESTABLISHED, RECORD };
/* What goes from an end: kind, epoch, handshake, and the handshake whose keys seal it. */
chan to[2] = [8] of { mtype, byte, byte, byte };
/* Handshakes by epoch and by which end is TLS's client: epoch * 2 + end. The first was end 0's,
   whose role in the guard is Client. */
byte sealer[2] = 2, opener[2] = 2, old[2], next[2];
mtype = { IDLE, AS_CLIENT, AS_SERVER };
mtype running[2] = IDLE;
byte starts = STARTS;
#define EPOCH(handshake) ((handshake) / 2)

inline say(end, what, epoch, handshake) { to[1 - end] ! what, epoch, handshake, sealer[end] }

/* advance(): keys are agreed on. The new opener is there before the peer seals with it. */
inline agree(end, handshake) { old[end] = opener[end]; opener[end] = handshake }

/* confirm(): TLS's client seals with new keys once the server is known to have them. */
inline confirm(end)
{
	if
	:: next[end] != 0 -> sealer[end] = next[end]; next[end] = 0; running[end] = IDLE
	:: else
	fi
}

proctype end(byte me)
{
	mtype what; byte epoch, handshake, by;
	do
	/* handle_timeout(): keys are due (an hour, 100 GB, half of what a suite allows). */
	:: atomic { starts > 0 && running[me] == IDLE && next[me] == 0 && nfull(to[1 - me]) ->
		starts--;
		running[me] = AS_CLIENT;
		say(me, HELLO, EPOCH(sealer[me]) + 1, (EPOCH(sealer[me]) + 1) * 2 + me) }
	/* Data. */
	:: atomic { starts > 0 && len(to[1 - me]) < 3 -> to[1 - me] ! RECORD, 0, 0, sealer[me] }
	:: atomic { to[me] ? what, epoch, handshake, by ->
#if CLAIM == OPENS
		assert(by == opener[me] || by == old[me]);
#endif
		/* open_with(): a record with the new keys says that the server has them. */
		if :: next[me] != 0 && by == next[me] -> confirm(me) :: else fi;
		if
		:: what == HELLO && epoch == EPOCH(sealer[me]) + 1 && next[me] == 0 -> /* settle_opening() */
			if
			:: running[me] == AS_CLIENT && me == 0 /* "Simultaneous Rekey Resolution": ours goes on */
			:: running[me] == AS_SERVER /* one handshake at a time */
			:: else -> running[me] = AS_SERVER; say(me, FLIGHT, epoch, handshake)
			fi
		:: what == FLIGHT && running[me] == AS_CLIENT && next[me] == 0 && handshake == (EPOCH(sealer[me]) + 1) * 2 + me ->
			agree(me, handshake);
			next[me] = handshake;
			say(me, FINISHED, epoch, handshake)
		:: what == FINISHED && running[me] == AS_SERVER && epoch == EPOCH(sealer[me]) + 1 ->
			agree(me, handshake);
			running[me] = IDLE;
			sealer[me] = handshake;
#if CLAIM == WITNESS
			assert(EPOCH(handshake) < 3);
#endif
			say(me, ESTABLISHED, epoch, handshake)
		:: what == ESTABLISHED && EPOCH(next[me]) == epoch -> confirm(me)
		:: else
		fi;
		what = 0; epoch = 0; handshake = 0; by = 0 }
	:: atomic { starts == 0 && empty(to[0]) && empty(to[1]) ->
#if CLAIM == STALL
		assert(running[0] == IDLE && running[1] == IDLE && sealer[0] == sealer[1] && opener[0] == opener[1]);
#endif
		break }
	od
}

init { atomic { run end(0); run end(1) } }
