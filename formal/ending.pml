/*
 * Ends of a protected association: ABORT in clear, doubt, the association that asks, succession,
 * restart of either end, and fades. A client and a server that listens share association 1; both
 * show the same keys all the time, and nobody else has keys.
 *
 * -DTODAY     the design before the commit "strangers and members"
 * -DFORGE=N   ABORTs in clear that an attacker injects who sees tags and cannot drop
 * -DFADES=N   times when nothing passes in one direction or in both
 * -DDROPS=N   packets that an attacker on path takes out
 * -DLATE=N    records that a slower path delivers after any time
 * -DCRASH=N   1: the client forgets everything once and connects anew, 2: the server does
 * -DCLAIM=... the one claim of this run
 *
 * A packet is a bit in flight. Time: a timer that waits for a record runs off only if no record of
 * that association is in flight, since two round trips and 300 ms are enough for an answer unless
 * it was lost. A tick is the time after which everybody repeats what was not answered. After the
 * last disturbance ticks are counted. The patience that a dead path gets (minutes, or without end
 * with --keep) does not run off: what only that would repair is a violation here.
 */
#define FORGED 1   /* no end without a newcomer that proved the same peer */
#define ALIVE 2    /* no end of what both ends have */
#define TOGETHER 3 /* a few ticks after the last disturbance both ends have the client's association */
#define PLACE 4    /* and the server has no other of that client */
#define WITNESS 5  /* the client never has another association than the first (violated) */
#define DENIED 6   /* no newcomer ever says that its end has not the older one (violated) */
#ifndef CLAIM
#define CLAIM FORGED
#endif
#ifndef FORGE
#define FORGE 0
#endif
#ifndef FADES
#define FADES 0
#endif
#ifndef DROPS
#define DROPS 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef CRASH
#define CRASH 0
#endif
#ifndef IDS
#define IDS 4     /* associations at a time; numbers are used again */
#endif
#define TICKS 6

/* States of an association at one end. */
#define NONE 0
#define HALF 1    /* handshake under way: at the server, a stranger */
#define FULL 2    /* the peer is proved, and all is protected */

/* Packets. OPEN is COOKIE ECHO, KEYS COOKIE ACK with the server's half of the key handshake, SEAL
   the record that ends it (secure/guard.rs: "Protection Established"). */
#define OPEN 1
#define SEAL 2
#define KEYS 2
#define PING 4    /* any record that is answered: HEARTBEAT, data */
#define PONG 8
#define BYE 16    /* ABORT, in a record if its sender has keys */
#define LOST 32   /* ABORT in clear with the T packet (RFC 9260 §8.4) */
#define TELL 64   /* in a record of one that asks: if the server has main, too (secure/inquiry.rs) */
#define RECORDS (PING | PONG)

byte client[IDS + 1], server[IDS + 1];
short up[IDS + 1], down[IDS + 1]; /* packets in flight to the server, to the client */
byte main = 1;   /* the client's association that its application knows */
byte question;   /* the one that asks for it (endpoint/succession.rs ask) */
/* Doubt at the client about main, at the server about each (assoc/protect.rs, Doubt). */
bool c_doubt, c_wait, c_newcomer;
#ifdef TODAY
bool s_doubt[IDS + 1], s_wait[IDS + 1], s_newcomer[IDS + 1];
#else
/* Which newcomer said that the client has it not. Its answer is reliable, and follows the proof: it
   goes with SEAL here. */
byte denied[IDS + 1];
byte said[IDS + 1]; /* in the SEAL of each: those that the client had, as bits */
bool told;          /* in the TELL: the server had main */
#endif
byte forge = FORGE, fades = FADES, drops = DROPS, late = LATE, crash = CRASH;
bool fade_up, fade_down;
byte late_id; short late_up, late_down;
byte ticks, fresh;

#define QUIET (forge == 0 && fades == 0 && drops == 0 && crash == 0 && !fade_up && !fade_down && late == 0 && late_id == 0)
#define SEND_UP(id, what) if :: fade_up :: else -> up[id] = up[id] | (what) fi
#define SEND_DOWN(id, what) if :: fade_down :: else -> down[id] = down[id] | (what) fi
#define IS_FREE(id) (client[id] == NONE && server[id] == NONE && up[id] == 0 && down[id] == 0 && late_id != id)
#if IDS == 3
#define ALL(it) (it(1) && it(2) && it(3))
#else
#define ALL(it) (it(1) && it(2) && it(3) && it(4))
#endif
#define STILL(id) (up[id] == 0 && down[id] == 0)
#ifdef TODAY
#define RESTS(id) (!s_wait[id])
#else
#define RESTS(id) (denied[id] == 0)
#endif
#define HAS_NONE(id) (server[id] == NONE)
#define IS_TAKEN(id) (!IS_FREE(id))
#define ONLY_MAIN(id) (id == main || server[id] != FULL)

#define HAS(id) (1 << (id))

#ifdef TODAY
#define SEAL_UP(id) SEND_UP(id, SEAL)
#else
#if IDS == 3
#define OF_CLIENT ((client[1] == FULL) * 2 + (client[2] == FULL) * 4 + (client[3] == FULL) * 8)
#else
#define OF_CLIENT ((client[1] == FULL) * 2 + (client[2] == FULL) * 4 + (client[3] == FULL) * 8 + (client[4] == FULL) * 16)
#endif
#define SEAL_UP(id) if :: fade_up :: else -> up[id] = up[id] | SEAL; said[id] = OF_CLIENT fi
#endif

/* Numbers are used again, what both ends call an association is not: what was said about the number
   before is about another one. */
inline forget_said(id)
{
#ifdef TODAY
	skip
#else
	if :: up[1] & SEAL -> said[1] = said[1] | HAS(id) :: else fi;
	if :: up[2] & SEAL -> said[2] = said[2] | HAS(id) :: else fi;
	if :: up[3] & SEAL -> said[3] = said[3] | HAS(id) :: else fi
#if IDS == 4
	; if :: up[4] & SEAL -> said[4] = said[4] | HAS(id) :: else fi
#endif
#endif
}

/* The client begins an association that asks (endpoint/succession.rs ask). */
inline ask()
{
	take_free();
	if
	:: IS_FREE(fresh) -> question = fresh; client[question] = HALF; forget_said(question); SEND_UP(question, OPEN)
	:: else
	fi; fresh = 0
}

/* The client: `main` has no doubt any more, or is over, so nothing has to be asked (tend_succession). */
inline stop_asking()
{
	if
	:: question != 0 ->
		SEND_UP(question, BYE);
		client[question] = NONE; question = 0
	:: else
	fi;
	c_doubt = false; c_wait = false; c_newcomer = false
}

inline end_main()
{
#if CLAIM == ALIVE
	assert(!(client[main] == FULL && server[main] == FULL));
#endif
#ifndef TODAY
	SEND_UP(main, BYE);
#endif
	client[main] = NONE; main = 0;
	stop_asking()
}

/* The association is gone; whom it was to succeed is doubted no more (succession.rs release). */
inline leave_server(id)
{
#ifdef TODAY
	server[id] = NONE; s_doubt[id] = false; s_wait[id] = false; s_newcomer[id] = false
#else
	server[id] = NONE; denied[id] = 0;
	if :: denied[1] == id -> denied[1] = 0 :: else fi;
	if :: denied[2] == id -> denied[2] = 0 :: else fi;
	if :: denied[3] == id -> denied[3] = 0 :: else fi
#if IDS == 4
	; if :: denied[4] == id -> denied[4] = 0 :: else fi
#endif
#endif
}

inline end_at_server(id)
{
#if CLAIM == ALIVE
	assert(!(client[id] == FULL && server[id] == FULL));
#endif
#ifndef TODAY
	SEND_DOWN(id, BYE); /* In a record: a peer that is there after all connects again. */
#endif
	leave_server(id)
}

inline take_free()
{
	fresh = 1;
	do
	:: fresh < IDS && !IS_FREE(fresh) -> fresh++
	:: else -> break
	od
}

/* The client's last key message. The newcomer `id` has proved who it is, and says which of the
   older ones of the same peer its end has not: of those a record is awaited (succession.rs succeed,
   handle_inquiry). It is told in turn if this end has main. */
inline prove_at_server(id)
{
	server[id] = FULL;
#ifndef TODAY
	j = 1;
	do
	:: j <= IDS ->
		if
		:: j != id && server[j] == FULL && !(said[id] & HAS(j)) ->
			denied[j] = id; SEND_DOWN(j, PING);
#if CLAIM == DENIED
			assert(false)
#endif
		:: else
		fi;
		j++
	:: else -> break
	od;
	j = 0; said[id] = 0;
	told = main != 0 && server[main] == FULL; SEND_DOWN(id, TELL)
#endif
}

/* A record opened at the server (assoc/guarded.rs handle_guarded). Beside a newcomer doubt stays, as
   the record may have been under way. */
inline record_at_server(id)
{
#ifdef TODAY
	if :: server[id] == HALF -> prove_at_server(id) :: else fi;
	s_doubt[id] = false; s_wait[id] = false; s_newcomer[id] = false
#else
	if
	:: server[id] == HALF -> prove_at_server(id)
	:: server[id] == FULL && (packet & SEAL) -> told = main != 0 && server[main] == FULL; SEND_DOWN(id, TELL)
	:: else
	fi
#endif
}

/* A packet of which an end has no association (endpoint/stray.rs handle_stray): an ABORT with the
   T packet; before, unless another association stands at the same addresses. */
inline stray_at_server(id)
{
#ifdef TODAY
	if :: ALL(HAS_NONE) -> SEND_DOWN(id, LOST) :: else fi
#else
	SEND_DOWN(id, LOST)
#endif
}
inline stray_at_client(id)
{
#ifdef TODAY
	if :: main == 0 && question == 0 -> SEND_UP(id, LOST) :: else fi
#else
	SEND_UP(id, LOST)
#endif
}

inline at_server(id, what)
{
	if
	:: what == OPEN ->
		if
#ifdef TODAY
		/* Table 12 of RFC 9260 §5.2.4 A, a restart: assoc/restart.rs drops it if keys are in use. */
		:: server[id] == NONE && !ALL(HAS_NONE)
#endif
		:: server[id] == FULL
		:: else -> server[id] = HALF; SEND_DOWN(id, KEYS)
		fi
	:: what == LOST ->
		if
		:: server[id] == HALF -> server[id] = NONE
#ifdef TODAY
		:: server[id] == FULL && !s_doubt[id] -> s_doubt[id] = true; s_wait[id] = true; SEND_DOWN(id, PING)
#endif
		:: else
		fi
	:: else -> /* in a record */
		if
		:: server[id] == NONE && what != BYE -> stray_at_server(id)
		:: server[id] == NONE && what == BYE
		:: server[id] != NONE && what == BYE -> leave_server(id)
		:: else ->
			record_at_server(id);
			if
			:: what == PING -> SEND_DOWN(id, PONG)
			:: else
			fi
		fi
	fi
}

inline at_client(id, what)
{
	if
	:: what == LOST -> /* assoc/protect.rs doubt_peer */
		if
		:: id == main && client[id] == FULL && !c_doubt ->
			c_doubt = true;
			SEND_UP(id, PING);
#ifdef TODAY
			c_wait = true
#else
			if :: question == 0 -> ask() :: else fi /* The end that connected asks by another association. */
		:: id == question -> client[question] = NONE; question = 0; c_wait = false; c_newcomer = false; ask()
#endif
		:: else
		fi
	:: what != LOST && client[id] == NONE -> if :: what == BYE :: else -> stray_at_client(id) fi
	:: what == KEYS && client[id] != NONE ->
		if
		:: client[id] == HALF ->
			client[id] = FULL;
			if
			:: id == question -> c_newcomer = true
			:: else
			fi
		:: else
		fi;
		SEAL_UP(id)
	:: what != LOST && what != KEYS && client[id] == FULL -> /* in a record */
		if
		:: what == PING -> SEND_UP(id, PONG)
#ifndef TODAY
		:: what == TELL && id == question && told -> stop_asking()
		:: what == TELL && id == question && !told -> c_wait = true; SEND_UP(main, PING)
#endif
		:: what == BYE && id == main -> client[main] = NONE; main = 0
		:: what == BYE && id == question -> client[question] = NONE; question = 0; c_wait = false; c_newcomer = false
		:: else
		fi;
		if
		:: id == main || main == 0 -> stop_asking()
		:: else
		fi
#ifndef TODAY
		; if :: what == TELL -> told = false :: else fi
#endif
	:: what != LOST && what != KEYS && client[id] == HALF
	fi
}

/* One packet that is in flight, of association `i`. */
inline pick(mask)
{
	if
	:: mask & 1 -> packet = 1
	:: mask & 2 -> packet = 2
	:: mask & 4 -> packet = 4
	:: mask & 8 -> packet = 8
	:: mask & 16 -> packet = 16
	:: mask & 32 -> packet = 32
	:: mask & 64 -> packet = 64
	fi
}

active proctype world()
{
	byte i, j; short packet;
	atomic { client[1] = FULL; server[1] = FULL }
	do
	/* ---- the network ---- */
	:: atomic { !ALL(STILL) -> select(i : 1 .. IDS);
		if
		:: up[i] != 0 -> pick(up[i]); up[i] = up[i] & ~packet; at_server(i, packet)
		:: down[i] != 0 -> pick(down[i]); down[i] = down[i] & ~packet; at_client(i, packet)
#if DROPS
		:: up[i] != 0 && drops > 0 -> pick(up[i]); up[i] = up[i] & ~packet; drops--
		:: down[i] != 0 && drops > 0 -> pick(down[i]); down[i] = down[i] & ~packet; drops--
#endif
#if LATE
		:: (up[i] & RECORDS) != 0 && late > 0 -> pick(up[i] & RECORDS); up[i] = up[i] & ~packet; late--; late_id = i; late_up = packet
#endif
		:: STILL(i)
		fi; i = 0; packet = 0 }
#if LATE
	:: atomic { late_id != 0 -> i = late_id; packet = late_up; late_id = 0; late_up = 0; at_server(i, packet); i = 0; packet = 0 }
	:: late > 0 -> late--
#endif
#if FADES
	:: atomic { fades > 0 && !fade_up && !fade_down -> fades--;
		if :: fade_up = true :: fade_down = true :: fade_up = true; fade_down = true :: skip fi }
	:: atomic { fade_up || fade_down -> fade_up = false; fade_down = false }
#endif
#if DROPS
	:: drops > 0 -> drops--
#endif
#if FORGE
	:: atomic { forge > 0 -> forge--;
		if
		:: main != 0 -> down[main] = down[main] | LOST /* whatever the fade: it stands beside the client */
		:: main != 0 -> up[main] = up[main] | LOST
		:: skip
		fi }
#endif
#if CRASH
	:: atomic { crash == 1 -> crash = 0;
		i = 1;
		do :: i <= IDS -> client[i] = NONE; i++ :: else -> break od; i = 0;
		main = 0; question = 0; c_doubt = false; c_wait = false; c_newcomer = false }
	:: atomic { crash == 2 -> crash = 0;
		i = 1;
		do :: i <= IDS -> leave_server(i); i++ :: else -> break od; i = 0 }
#endif

	/* ---- timers (assoc/protect.rs handle_key_timeout) ---- */
	:: atomic { c_wait && (up[main] & RECORDS) == 0 && (down[main] & RECORDS) == 0 ->
		c_wait = false;
#ifdef TODAY
#if CLAIM == FORGED
		assert(c_newcomer);
#endif
		end_main()
#else
		if
		:: c_newcomer ->
#if CLAIM == FORGED
			assert(question != 0 && client[question] == FULL);
#endif
			end_main()
		:: else
		fi
#endif
		}
	:: atomic { !ALL(RESTS) -> select(i : 1 .. IDS);
		if
		:: !RESTS(i) && (up[i] & RECORDS) == 0 && (down[i] & RECORDS) == 0 ->
#ifdef TODAY
			s_wait[i] = false;
#if CLAIM == FORGED
			assert(s_newcomer[i]);
#endif
#endif
			end_at_server(i)
		:: else
		fi; i = 0 }

	/* ---- the application connects again ---- */
	:: atomic { main == 0 && !ALL(IS_TAKEN) -> take_free();
		main = fresh; fresh = 0; client[main] = HALF; forget_said(main);
		SEND_UP(main, OPEN);
#if CLAIM == WITNESS
	   }
	:: atomic { main > 1 && client[main] == FULL && server[main] == FULL && HAS_NONE(1) -> assert(false);
#endif
		}

	/* ---- a tick ---- */
	:: atomic { ALL(STILL) && ALL(RESTS) && !c_wait && (main != 0 || ALL(IS_TAKEN)) && (!QUIET || ticks <= TICKS) ->
		if
		:: QUIET -> ticks++;
#if CLAIM == TOGETHER
			if :: ticks > TICKS -> assert(main != 0 && client[main] == FULL && server[main] == FULL) :: else fi;
#elif CLAIM == PLACE
			if :: ticks > TICKS -> assert(ALL(ONLY_MAIN)) :: else fi;
#endif
		:: else
		fi;
		if
		:: main != 0 && client[main] == HALF -> SEND_UP(main, OPEN)
		:: main != 0 && client[main] == FULL -> SEND_UP(main, PING)
		:: else
		fi;
		if
		:: question != 0 && client[question] == HALF -> SEND_UP(question, OPEN)
#ifndef TODAY
		:: question != 0 && client[question] == FULL && !c_wait -> SEAL_UP(question)
		:: question == 0 && main != 0 && c_doubt -> ask()
#endif
		:: else
		fi;
		i = 1;
		do
		:: i <= IDS ->
			if
			:: server[i] == HALF && client[i] == NONE -> server[i] = NONE /* limits.rs patience: 30 s */
			:: server[i] == HALF && client[i] != NONE -> SEND_DOWN(i, KEYS)
			:: server[i] == FULL ->
				SEND_DOWN(i, PING);
			:: else
			fi;
			i++
		:: else -> break
		od; i = 0 }
	:: ticks > TICKS && QUIET -> break
	od
}
